"""Which job starts, when, and what is said of those that wait."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.schedule import Schedule, Wish

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import Json, LiveService


def test_ageing_brings_a_job_to_its_turn_before_urgent_ones_that_came_later(
    make_service: Callable[[str], LiveService],
) -> None:
    """Q-01: an urgent job always waits; a step of ageing takes 1 s, not 30 min."""
    step, levels = 1.0, 4
    service = make_service("[limits]\nworkers = 1\n")
    service.start_patched(
        f"import forge_actors.domain.priority as p; p.AGEING_STEP = {step}"
    )
    service.add("app")
    service.add("other")
    gate, bell = service.gate(), service.bell()
    service.bash("app", f"{bell.ring}; {gate.wait}", "--priority", "P0")
    bell.wait()
    low = [
        service.submit("--repo", repo, "--priority", "P4", "--", "true")
        for repo in ("app", "other")
    ]
    urgent: Json = {"repo": "app", "argv": ["sleep", "0.2"], "priority": "P0"}
    flow = service.batch([urgent] * 80)  # more than can run while the two wait
    gate.open()
    service.wait(*low)
    entries = service.events()
    # The first of them: a job is also queued again when its claims come free.
    queued = {e.job: e.at for e in entries[::-1] if e.kind == "job_queued"}
    started = {e.job: e.at for e in entries if e.kind == "job_dispatched"}
    for job in low:
        # From then on it is as urgent as the others, and older; repositories compare
        # their jobs anew at every safety pass, 5 s after the last one at most.
        waited = started[job] - queued[job]
        assert levels * step <= waited < levels * step + 5 + 2
        before = [other for other in flow if started.get(other, 1e12) < started[job]]
        assert 3 <= len(before) < len(flow)


def test_an_urgent_job_goes_first_although_its_claim_comes_free_only_now(
    make_service: Callable[[str], LiveService],
) -> None:
    """The end of one job frees a worker and a claim; what it freed goes in order."""
    service = make_service("[limits]\nworkers = 1\n")
    service.start()
    service.add("app")
    service.add("other")
    gate, bell = service.gate(), service.bell()
    service.bash("app", f"{bell.ring}; {gate.wait}", "--priority", "P0")
    bell.wait()
    later = [
        service.submit("--repo", "other", "--priority", "P4", "--", "true")
        for _ in range(3)
    ]
    urgent = [
        service.submit("--repo", "app", "--priority", "P0", "--", "true")
        for _ in range(6)
    ]
    gate.open()
    service.wait(*urgent, *later)
    order = [e.job for e in service.events() if e.kind == "job_dispatched"]
    assert order[1:] == [*urgent, *later]


def test_jobs_behind_a_failed_one_end_at_once_and_say_why(
    service: LiveService,
) -> None:
    """Q-05: the whole chain ends at once, each with the job that blocked it."""
    gate = service.gate()
    first = service.bash("app", f"{gate.wait}; false")
    second = service.submit("--repo", "app", "--after", first, "--", "true")
    third = service.submit("--repo", "app", "--after", second, "--", "true")
    bystander = service.submit("--repo", "app", "--", "true")
    gate.open()
    ends = service.wait(first, second, third, bystander)
    assert [end["state"] for end in ends] == [
        "failed",
        "human_attention_required",
        "human_attention_required",
        "succeeded",
    ]
    for end, cause in ((ends[1], first), (ends[2], second)):
        assert end["error"]["code"] == "DEPENDENCY_BLOCKED"
        assert cause in end["error"]["message"]
        assert end["attempt"] == 0
        assert "DEPENDENCY_BLOCKED" in service.why(end["id"])
    at = {e.job: e.at for e in service.events() if e.data.get("error")}
    assert at[third] - at[first] < 1.0
    # One that comes too late is told at once as well.
    late = service.submit("--repo", "app", "--after", third, "--", "true")
    assert service.end_of(late)["error"]["code"] == "DEPENDENCY_BLOCKED"


def test_one_repository_under_many_paths_is_one_repository(
    service: LiveService,
) -> None:
    """Q-11: exclusive jobs of one repository run one at a time, by whatever path."""
    app = service.root / "app"
    (service.root / "link").symlink_to(app)
    service.git("-C", app, "worktree", "add", "--quiet", "../linked")
    roundabout = "./app/../app"
    for path in (service.root / "link", roundabout, "linked", app / ".git" / ".."):
        done = service.cli("repo", "add", path, status=0, cwd=service.root)
        assert (done.out, "already registered" in done.err) == ("app\n", True)
    assert len(service.json("repo", "list")) == 1
    gate = service.gate()
    jobs = [
        service.cli(
            *("submit", "--repo", path, "--claim", "exclusive:repo-content:*"),
            *("--", "bash", "-c", f"pwd; {gate.wait}"),
            status=0,
            cwd=service.root,
        ).out.strip()
        for path in ("app", "./link", roundabout, "./linked")
        for _ in range(2)
    ]
    gate.open()
    assert {end["state"] for end in service.wait(*jobs)} == {"succeeded"}
    running: set[str | None] = set()
    for entry in service.events():
        if entry.kind == "job_dispatched":
            assert not running
            running.add(entry.job)
        elif entry.kind == "job_succeeded":
            running.remove(entry.job)
    folders = [service.log(job).decode().strip() for job in jobs]
    assert folders == [str(app)] * 6 + [str(service.root / "linked")] * 2


def test_worktrees_share_only_what_they_share(service: LiveService) -> None:
    """Q-11: a linked work tree has files of its own, and the same content."""
    service.git("-C", "app", "worktree", "add", "--quiet", "../linked")
    gate = service.gate()
    bell = service.bell()
    script = f"{bell.ring}; {gate.wait}"
    options = ("--claim", "write:workspace")
    for path in ("app", "linked"):
        service.bash(str(service.root / path), script, *options)
    bell.wait(2)  # both run at the same time
    waiting = service.bash(str(service.root / "linked"), "true", *options)
    assert service.show(waiting)["waiting"]["kind"] == "claim"
    gate.open()


# What a waiting job is told


def test_why_names_who_holds_what_a_job_waits_for(
    make_service: Callable[[str], LiveService],
) -> None:
    """C-07: tokens, claims and dependencies."""
    service = make_service("[limits]\nworkers = 3\nheavy_checks = 1\n")
    service.start()
    service.add("app")
    service.add("other")
    gate, bell = service.gate(), service.bell()
    script = f"{bell.ring}; {gate.wait}"
    writer = service.bash("app", script)
    heavy = service.bash("other", script, "--kind", "check")
    agent = service.bash("other", script, "--kind", "agent-run", "--read-only")
    bell.wait(3)
    by_claim = service.bash("app", "true")
    by_heavy = service.bash("other", "true", "--kind", "check")
    by_worker = service.submit("--repo", "other", "--read-only", "--", "true")
    by_dependency = service.submit("--repo", "app", "--after", writer, "--", "true")
    for job, kind, holders in (
        (by_claim, "claim", {writer}),
        (by_worker, "token", {writer, heavy, agent}),
        (by_dependency, "dependency", {writer}),
    ):
        waiting = service.json("why", job)["waiting"]
        assert (waiting["kind"], set(waiting["holders"])) == (kind, holders)
        text = service.why(job)
        assert all(holder in text for holder in holders)
    assert heavy in service.why(by_heavy)
    table = service.cli("jobs", "--active", status=0).out
    assert f"claim ({writer[-6:]})" in table
    gate.open()
    ends = service.wait(by_claim, by_heavy, by_worker, by_dependency)
    assert {end["state"] for end in ends} == {"succeeded"}


def test_a_job_that_waited_too_long_for_its_claim_is_not_overtaken(
    make_service: Callable[[str], LiveService],
) -> None:
    """Q-02, C-07: what it lacks is kept free for it, and both jobs say so."""
    service = make_service('[scheduling]\novertake_after = "1s"\n')
    service.start()
    service.add("app")
    gates, bell = [service.gate(), service.gate()], service.bell()
    first = service.bash(
        "app", f"{bell.ring}; {gates[0].wait}", "--claim", "read:path:a"
    )
    bell.wait()
    reads = ["bash", "-c", f"{bell.ring}; {gates[1].wait}"]
    lines: list[Json] = [
        {"repo": "app", "argv": ["true"], "priority": "P1"},
        {"repo": "app", "argv": reads, "claims": ["read:path:a"]},
    ]
    big, reader = service.batch(lines)
    bell.wait()  # it may overtake what could not start anyway
    # A job that runs for the time of the setting passes it without a sleep of ours.
    service.end_of(service.submit("--repo", "app", "--read-only", "--", "sleep", "1.2"))
    late = service.bash("app", "true", "--claim", "read:path:a")
    service.json("jobs", "--active")
    gates[1].open()
    service.wait(reader)
    waiting = service.json("why", late)["waiting"]
    assert (waiting["kind"], waiting["holders"]) == ("reservation", [big])
    assert big in service.why(late)
    assert first in service.why(big)
    gates[0].open()
    assert {end["state"] for end in service.wait(first, big, late)} == {"succeeded"}
    order = [e.job for e in service.events() if e.kind == "job_dispatched"]
    assert order.index(big) < order.index(late)


# Limits


MIXED: tuple[Json, ...] = (
    {"argv": ["sleep", "0.05"]},
    {"argv": ["sleep", "0.05"], "read_only": True},
    {"argv": ["sleep", "0.10"], "kind": "check"},
    {"argv": ["sleep", "0.05"], "kind": "verify-edit", "priority": "P1"},
    {"argv": ["sleep", "0.10"], "kind": "agent-run", "provider": "local"},
    {"argv": ["sleep", "0.02"], "claims": ["write:path:a"], "priority": "P3"},
    {"argv": ["sleep", "0.02"], "claims": ["read:path:a"]},
    {"argv": ["sleep", "0.02"], "claims": ["write:path:b"], "provider": "local"},
)
LIMITS = {"workers": 4, "heavy_checks": 2, "agents": 4, "provider:local": 1}
REPOSITORIES = 3


def test_no_limit_is_passed_and_no_slot_stands_empty(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service(
        "[limits]\nworkers = 4\nheavy_checks = 2\nagents = 4\n"
        f"active_repositories = {REPOSITORIES}\n[providers.local]\nlimit = 1\n"
        # Agents that are in each other's way would get worktrees.
        "[worktrees]\nautomatic = false\n"
    )
    service.start()
    names = [f"r{number}" for number in range(5)]
    for name in names:
        service.add(name)
    gate, bell = service.gate(), service.bell()
    script = f"{bell.ring}; {gate.wait}"
    first = [service.bash("r0", script, "--read-only") for _ in range(4)]
    bell.wait(4)
    for job in first:
        service.pid_of(job)
    jobs = service.batch([{**MIXED[n % 8], "repo": names[n % 5]} for n in range(200)])
    status = service.json("status")
    assert Counter(status["counts"]) == Counter(queued=200, running=4)
    assert status["capacity"]["workers"]["used"] == 4
    assert status["capacity"]["workers"]["limit"] == 4
    assert status["capacity"]["heavy_checks"] == {"used": 0, "limit": 2, "jobs": []}
    assert status["capacity"]["active_repositories"] == {"used": 1, "limit": 3}
    assert status["providers"]["local"]["limit"] == 1
    assert status["pressure"]["active"] is False
    gate.open()
    assert {end["state"] for end in service.wait(*jobs)} == {"succeeded"}

    wishes = {
        job: Wish.of({**MIXED[n % 8], "repo": names[n % 5]})
        for n, job in enumerate(jobs)
    }
    wishes |= dict.fromkeys(first, Wish("r0", ("workers",), ()))
    schedule = Schedule(LIMITS, REPOSITORIES)
    for entry in service.events():
        schedule.take(entry, wishes.get(entry.job or ""))
    assert schedule.problems == []
    # The log is one in which the limits were felt, all of them.
    assert schedule.peaks == {**LIMITS, "agents": 1, "repositories": REPOSITORIES}
    # A wake-up that was missed would be made up for by the safety pass, after 5 s.
    assert max(schedule.pauses) < 2.0
    assert sorted(schedule.pauses)[len(schedule.pauses) // 2] < 0.1


@pytest.mark.parametrize("fault", ["limit", "claim", "empty slot"])
def test_the_model_sees_a_schedule_that_is_wrong(fault: str) -> None:
    """The judge of the test above, judged."""
    schedule = Schedule({"workers": 2}, 2)
    writer = Wish("a", ("workers",), ("write:repo-content:*",))
    reader = Wish("b", ("workers",), ())
    other = writer if fault == "claim" else reader
    log = [("job_queued", "1", writer, 0.0), ("job_dispatched", "1", writer, 0.1)]
    log += [("job_queued", "2", other, 0.2), ("job_queued", "3", reader, 0.2)]
    if fault == "empty slot":
        log += [("job_succeeded", "1", writer, 9.0)]
    log += [("job_dispatched", "2", other, 9.1)]
    if fault == "limit":
        log += [("job_dispatched", "3", reader, 9.2)]
    for kind, job, wish, at in log:
        schedule.play(kind, job, wish, at)
    assert (schedule.problems != []) == (fault != "empty slot")
    assert (max(schedule.pauses) > 8.0) or fault == "limit"
