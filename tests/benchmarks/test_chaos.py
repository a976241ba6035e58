"""The checks of a chaos run see what is wrong, each by itself."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from benchmarks.chaos import __main__ as command
from benchmarks.chaos.checks import violations
from benchmarks.chaos.evidence import Evidence
from benchmarks.chaos.kills import WITH_AGENT, Blow, make_targets
from benchmarks.chaos.plans import PROGRAM, Place, Plan, make_plans
from benchmarks.chaos.story import read_story
from benchmarks.chaos.times import decisions, late
from benchmarks.chaos.told import Run, Unreadable, read_told
from forge_actors.domain.events import EventView

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

JOB = "1m8ndc8b8bnfrd6tneg"
ERROR = {"code": "WORKER_LOST", "message": "the node agent ended while it ran"}


class Scene:
    """Evidence of one job that ran well, to be spoiled; moments are small numbers."""

    def __init__(self) -> None:
        place = Place(Path("/nowhere"), {"app": Path("/nowhere/app")})
        self.evidence = Evidence(
            place, {}, {}, [], [], {"workers": 1}, to_monotonic=0.0
        )
        self.seq = 0
        self.fence = 0
        self.event("runtime_started", 0, pid=1)
        limits = {"tokens": {"workers": 1, "heavy_checks": 1}}
        more = {"active_repositories": 5, "repository_workers": 5}
        self.event("limits", 0, **limits, **more)
        self.event("repository_added", 0, name="app", path="/nowhere/app")

    def event(self, word: str, at: float, job: str | None = None, **data: Any) -> None:
        self.seq += 1
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at))
        moment = f"{moment}.{int(at * 1000) % 1000:03}+00:00"
        found = EventView(self.seq, moment, word, "app", job, data, repo_id="r")
        self.evidence.events.append(found)

    def job(self, name: str = "one", *, job: str = JOB, **fields: Any) -> Plan:
        """A job that was accepted."""
        plan = Plan(name, "app", 1.0, read_only=True, **fields)
        evidence: Any = self.evidence
        evidence.plans[name], evidence.ids[name] = plan, job
        evidence.runs[name] = []
        self.event(
            "job_queued", 1, job, reason="accepted", origin="cli",
            kind=plan.kind, priority="P2",
        )  # fmt: skip
        return plan

    def begin(
        self, at: float, *, name: str = "one", attempt: int = 1, told: bool = True
    ) -> Run:
        job = self.evidence.ids[name]
        self.fence += 1
        self.event(
            "job_dispatched", at, job, attempt=attempt, fence=self.fence,
            tokens=["workers"], claims=[],
        )  # fmt: skip
        run = Run(name, job, attempt, self.fence, 4711, at)
        if told:
            self.evidence.runs[name].append(run)
        return run

    def end(
        self,
        at: float,
        state: str = "succeeded",
        *,
        name: str = "one",
        code: int | None = 0,
        ended: float | None = None,
        error: Mapping[str, str] | None = None,
    ) -> None:
        """It is told to have ended; with a code the last run says so too."""
        job = self.evidence.ids[name]
        data = {"attempt": 1, **({} if error is None else {"error": error})}
        self.event(f"job_{state}", at, job, **data)
        found = self.evidence.runs[name]
        if code is not None:
            found[-1].ended, found[-1].code = at if ended is None else ended, code
            self.evidence.last_lines[job] = found[-1].last_line
        self.evidence.views[job] = {
            "id": job,
            "name": name,
            "state": state,
            "exit_code": code,
            "attempt": found[-1].attempt if found else 0,
            "error": error,
            "waiting": None,
        }

    @property
    def wrong(self) -> str:
        return "\n".join(violations(self.evidence, read_story(self.evidence)))


@pytest.fixture
def scene() -> Scene:
    made = Scene()
    made.job()
    return made


def agent_killed(at: float) -> Blow:
    return Blow(1, "agent", agent=(at, at + 0.01))


def test_a_job_that_ran_well_is_not_wrong(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    assert scene.wrong == ""


def test_a_job_that_was_interrupted_by_a_kill_is_not_wrong(scene: Scene) -> None:
    scene.begin(2)
    scene.end(4, "human_attention_required", code=None, error=ERROR)
    scene.evidence.blows.append(agent_killed(3))
    assert scene.wrong == ""


def lose(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.evidence.views.clear()


def never_end(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.evidence.views[JOB]["state"] = "running"


def begin_twice(scene: Scene) -> None:
    run = scene.begin(2)
    scene.end(3)
    scene.evidence.runs["one"].append(replace(run))


def begin_too_often(scene: Scene) -> None:
    scene.job("two", job="2", replay="safe", max_attempts=1)
    scene.begin(2, name="two")
    scene.event("job_queued", 3, "2", reason="again")
    scene.begin(4, name="two", attempt=2)
    scene.end(5, name="two")


def run_a_finished_one_again(scene: Scene) -> None:
    scene.job("two", job="2", replay="safe")
    run = scene.begin(2, name="two")
    run.ended, run.code = 3.0, 0
    scene.event("job_queued", 5, "2", reason="again")
    scene.begin(6, name="two", attempt=2)
    scene.end(7, name="two")
    scene.evidence.blows.append(agent_killed(4.5))


def cut_off(scene: Scene) -> None:
    scene.begin(2)
    scene.end(4, "human_attention_required", code=None, error=ERROR)
    scene.evidence.blows.append(agent_killed(5))


def lose_the_receipt(scene: Scene) -> None:
    run = scene.begin(2)
    run.ended, run.code = 3.0, 0
    scene.end(4.5, "human_attention_required", code=None, error=ERROR)
    scene.evidence.blows.append(agent_killed(4.2))


def guess_success(scene: Scene) -> None:
    scene.begin(2)
    scene.end(4, code=None)
    scene.evidence.blows.append(agent_killed(3))


def tell_another_code(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3, "failed", code=3, error={"code": "EXIT_NONZERO", "message": "3"})
    scene.evidence.views[JOB]["exit_code"] = 4


def lose_output(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.evidence.last_lines[JOB] = ""


def ask_for_attention_in_vain(scene: Scene) -> None:
    scene.job("two", job="2", replay="safe")
    scene.begin(2, name="two")
    scene.end(4, "human_attention_required", name="two", code=None, error=ERROR)
    scene.evidence.blows.append(agent_killed(3))


def orphan(scene: Scene) -> None:
    scene.begin(2)
    scene.end(4, "orphaned", code=None, error=ERROR)
    scene.evidence.blows.append(agent_killed(3))


def run_two_where_one_may(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3, ended=4)
    scene.job("two", job="2")
    scene.begin(3.5, name="two")
    scene.end(5, name="two")


def dispatch_two_where_one_may(scene: Scene) -> None:
    scene.begin(2)
    scene.job("two", job="2")
    scene.begin(2.5, name="two", told=False)


def overlap(scene: Scene) -> None:
    run = scene.begin(2)
    run.overlaps.append("/locks/app.repo-content.")
    scene.end(3)


def share_a_fence(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.job("two", job="2")
    scene.begin(4, name="two").fence = 1
    scene.end(5, name="two")


def begin_before_its_dependency(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.job("two", job="2", after=("one",))
    scene.begin(4, name="two").began = 2.5
    scene.end(5, name="two")


def change_an_end(scene: Scene) -> None:
    scene.begin(2)
    scene.end(3)
    scene.event("job_failed", 4, JOB, attempt=1)


def test_a_kill_of_some_jobs_excuses_no_other(scene: Scene) -> None:
    run = scene.begin(2)
    scene.end(4, "human_attention_required", code=None, error=ERROR)
    blow = Blow(1, "jobs", jobs=(3.0, 3.1), victims=[run.pid + 1])
    scene.evidence.blows.append(blow)
    assert "attempt 1 was cut off, and no kill hit it" in scene.wrong
    blow.victims.append(run.pid)
    assert scene.wrong == ""


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lose, "is lost"),
        (never_end, "has not ended"),
        (begin_twice, "may not be repeated, and began 2 times"),
        (begin_too_often, "more than 1"),
        (run_a_finished_one_again, "had ended with 0, and began again"),
        (cut_off, "attempt 1 was cut off, and no kill hit it"),
        (lose_the_receipt, "and no kill hit it"),
        (guess_success, "never ended by its own account"),
        (tell_another_code, "exit code 4, and ended with 3"),
        (lose_output, "its output ends with ''"),
        (ask_for_attention_in_vain, "and may be repeated (safe)"),
        (orphan, "is orphaned"),
        (run_two_where_one_may, "2 ran at once that need workers"),
        (dispatch_two_where_one_may, "makes 2 of 1 workers"),
        (overlap, "while processes of another job still held app.repo-content"),
        (share_a_fence, "has the fence of one, attempt 1"),
        (begin_before_its_dependency, "two began before one had succeeded"),
        (change_an_end, "the events contradict themselves"),
    ],
)
def test_what_is_wrong_is_said(
    scene: Scene, spoil: Callable[[Scene], None], words: str
) -> None:
    spoil(scene)
    assert words in scene.wrong


def test_runs_whose_claims_conflict_are_seen_though_no_lock_was_in_the_way(
    scene: Scene,
) -> None:
    evidence: Any = scene.evidence
    evidence.limits = {}
    run = scene.begin(2)
    scene.end(3)
    run.ended = 4.0
    scene.job("two", job="2")
    scene.begin(3.5, name="two")
    scene.end(5, name="two")
    assert scene.wrong == ""
    for name, claim in (("one", "write:path:src"), ("two", "write:path:src/a")):
        evidence.plans[name] = replace(evidence.plans[name], claims=(claim,))
    assert "two began while one held write:path:src" in scene.wrong


def test_a_job_that_stays_undecided_after_everything_was_killed_is_late(
    scene: Scene,
) -> None:
    from benchmarks.chaos.processes import Start

    blow = Blow(1, "all", agent=(3.0, 3.1), jobs=(3.1, 3.2), service=3.0, ready=4.0)
    scene.evidence.blows.append(blow)
    scene.evidence.starts.append(Start(3.5, 4.0))
    scene.begin(2)
    scene.end(5.5, "human_attention_required", code=None, error=ERROR)
    [decision] = decisions(scene.evidence, read_story(scene.evidence))
    assert (decision.since_ready, decision.since_start) == (1.5, 2.0)
    assert len(list(late([decision]))) == 1
    assert scene.wrong == ""


def test_one_seed_makes_the_same_jobs_and_kills() -> None:
    def made(seed: int) -> object:
        plans = make_plans(random.Random(seed), 50, ["a", "b"])
        return plans, make_targets(random.Random(seed), 20, 5)

    assert made(1) == made(1)
    assert made(1) != made(2)
    targets = make_targets(random.Random(3), 20, 5)
    assert sum(one in WITH_AGENT for one in targets) == 5
    assert len(targets) == 24
    assert (targets.count("stop"), targets.count("jobs")) == (2, 2)


@pytest.mark.parametrize("code", [0, 7])
def test_a_job_writes_down_that_it_ran(tmp_path: Path, code: int) -> None:
    """Beside a process that holds one of its locks, and with a child that goes on."""
    told, held, free = tmp_path / "one", tmp_path / "held", tmp_path / "free"
    with held.open("w") as file:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX)
        locks = [f"alone:{held}", f"shared:{free}"]
        words = ["0.001", f"3,{code}", "hidden", "0.001", "hears", *locks]
        done = subprocess.run(
            [sys.executable, "-I", "-S", str(PROGRAM), str(told), *words],
            env={"FORGE_JOB_ID": "j", "FORGE_ATTEMPT": "2", "FORGE_FENCE": "9"},
            capture_output=True,
        )
    assert done.returncode == code
    [run] = read_told(told)
    assert (run.name, run.job, run.attempt, run.fence) == ("one", "j", 2, 9)
    assert (run.code, run.overlaps) == (code, [str(held)])
    assert done.stdout.decode().strip() == run.last_line
    assert run.ended is not None
    assert run.ended > run.began


def test_a_line_without_its_beginning_is_no_run(tmp_path: Path) -> None:
    told = tmp_path / "one"
    told.write_text("end j 1 9 4711 1000 0\n")
    with pytest.raises(Unreadable):
        read_told(told)


@pytest.mark.parametrize(
    "words", [["--jobs", "0"], ["--kills", "1", "--agent-kills", "2"], ["--home", "/"]]
)
def test_sizes_that_make_no_sense_are_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(words)
    assert refused.value.code == 2
