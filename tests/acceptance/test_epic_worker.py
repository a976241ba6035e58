"""The worker of an issue as a process: to where the work settles, however it is cut."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.phases import effect_of
from tests.acceptance.epic_worker_kit import Bench, git, gone
from tests.runtime.kit import processes_with

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_worker_goes_from_phase_to_phase_until_the_work_is_ready(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    remote, mark = tmp_path / "remote.git", f"8712.{os.getpid():07d}41"
    git(tmp_path, "init", "-q", "--bare", str(remote))
    git(bench.checkout, "remote", "add", "origin", str(remote))
    bench.settings(
        more="effects = ['push']",
        prepare=f"test $EPIC_ISSUE = 12; ls -l /proc/self/fd > {tmp_path}/open",
        implement=f"(setsid sleep {mark} > /dev/null 2>&1 &);"
        f" cat >> {tmp_path}/asked; echo $EPIC_PHASE >> work",
        check='test "$(wc -l < work)" = 2 || { echo one line is missing; exit 1; }',
        review="cat > /dev/null; git push origin HEAD:refs/heads/mine && exit 9; true",
    )
    with bench.admitted() as worker:
        before = bench.files()
        assert await worker.wait() == 0, bench.log()
    ours = f"{bench.common}/forge-actors"
    own = (f"{ours}/issues/12/state/", f"{ours}/worktrees/12/", f"{ours}/id")
    others = {name for name in bench.files() if not name.startswith(own)}
    assert {name: bench.files()[name] for name in others} == {
        name: data for name, data in before.items() if not name.startswith(own)
    }, "it writes nothing but its own"
    assert bench.traced == [
        *("prepare", "implement", "check", "implement", "check", "review")
    ]
    state = bench.state
    assert (state.phase, state.findings) == ("ready_for_merge", "")
    assert state.tries == {"prepare": 1, "implement": 2, "check": 2, "review": 1}
    # What it did is on its branch, in its worktree and at the remote, and nowhere else.
    head = git(bench.worktree, "rev-parse", "HEAD")
    assert git(bench.worktree, "branch", "--show-current") == "forge/epic-7/issue-12"
    assert git(bench.worktree, "show", "HEAD:work") == "implement\nimplement"
    assert git(bench.checkout, "status", "--porcelain") == ""
    assert git(remote, "branch", "--format=%(refname:short) %(objectname)") == (
        f"forge/epic-7/issue-12 {head}"
    ), "a phase can push nothing by itself"
    done = effect_of(state, "push")
    assert done is not None
    assert (done.state, done.commit) == ("done", head)
    # What it was asked is quoted and harmless; of its locks nobody else had one.
    asked = (tmp_path / "asked").read_text()
    assert "Title: Say hello" in asked
    assert "\x1b" not in asked
    assert "one line is missing" in asked
    opened = (tmp_path / "open").read_text()
    assert "run.lock" not in opened
    assert not any(line.endswith("/.git") for line in opened.splitlines())
    assert processes_with(mark) == [], "nothing that it started outlives it"
    bench.locks.take_run(12).close()
    assert "settled: ready_for_merge" in bench.log()


#: What runs once and then never ends, unless it is ended.
ONCE = "test -e {mark} || {{ touch {mark}; echo $$ > {gate}; exec sleep 600; }}"


@pytest.mark.parametrize(
    ("phase", "how", "status"), [("implement", "interrupt", 130), ("check", "kill", -9)]
)
async def test_a_worker_that_was_ended_is_gone_on_with_where_it_was(
    phase: str, how: str, status: int, tmp_path: Path
) -> None:
    bench = Bench(tmp_path)
    gate = bench.gate("gate")
    scripts = {"prepare": "true", "implement": "echo x >> work", "check": "true"}
    once = ONCE.format(mark=tmp_path / "mark", gate=gate.path)
    scripts[phase] = f"{once}; {scripts[phase]}"
    bench.settings(**scripts)
    with bench.admitted() as worker:
        pid = int(await gate.reached())
        before = bench.state
        getattr(worker, how)()
        assert await worker.wait() == status
        await gone(pid)
    assert bench.state == before, "what is saved is always a boundary"
    assert before.phase == phase
    with bench.admitted() as worker:
        assert await worker.wait() == 0, bench.log()
    assert bench.generation == 2
    again = ["prepare", "implement", "check"]
    again.insert(again.index(phase), phase)
    assert bench.traced == again, "what had ended is not done again"
    state = bench.state
    assert state.phase == "ready_for_merge"
    assert (set(state.tries.values()), state.setbacks) == ({1}, {})
    assert git(bench.worktree, "show", "HEAD:work") == "x"


async def test_the_second_interrupt_ends_it_at_once(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    gate, told = bench.gate("gate"), bench.gate("told")
    trap = f"trap 'echo told > {told.path}' TERM; echo $$ > {gate.path}"
    bench.settings(implement=f"{trap}; while :; do sleep 600 & wait; done")
    with bench.admitted() as worker:
        pid = int(await gate.reached())
        before = bench.files()
        worker.interrupt()
        await told.reached()
        worker.interrupt()
        assert await worker.wait() == 130
        await gone(pid)
    assert "interrupted" not in bench.log(), "it did not wait for what it had started"
    assert bench.state.phase == "implement"
    state = [name for name in before if name.endswith("state/state.json")]
    assert all(bench.files()[name] == before[name] for name in state)


async def test_one_that_is_not_the_worker_of_the_claim_writes_nothing(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.settings(implement="true")
    with bench.admitted(swapped=True) as worker:
        before = bench.files()
        assert await worker.wait() == 3, bench.log()
    assert bench.files() == before
    assert bench.log().startswith("forge-actors: the descriptor ")
    assert "Traceback" not in bench.log()
    assert bench.traced == []
    assert not bench.worktree.exists()
