"""What a job claims: never kept from it for ever, never kept by the dead."""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import survivors, wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import Json, LiveService

    Make = Callable[[str], LiveService]

#: Seconds after which what a job lacks is kept free for it, in the tests of that.
BOUND = 1.0
#: What a big job needs, a job that has a part of it for long, and small jobs that take
#: the rest of it in turn.
NEEDS: dict[str, tuple[Json, Json, Json]] = {
    "claims": (
        {"claims": ["exclusive:repo-content:*"]},
        {"claims": ["read:path:src"]},
        {"claims": ["read:path:src"]},
    ),
    "tokens": (
        {"kind": "check", "provider": "local"},
        {"claims": ["read:path:src"], "provider": "local"},
        {"kind": "check"},
    ),
}


@pytest.mark.parametrize("need", list(NEEDS))
def test_small_jobs_overtake_a_big_one_only_for_a_time(
    make_service: Make, need: str
) -> None:
    """Q-02: from a bound on they wait for it, however many there are."""
    service = make_service(
        f'[scheduling]\novertake_after = "{BOUND}s"\n'
        "[limits]\nheavy_checks = 1\n[providers.local]\nlimit = 1\n"
    )
    service.start()
    service.add("app")
    big, long, small = NEEDS[need]
    gate, bell = service.gate(), service.bell()
    script = ["bash", "-c", f"{bell.ring}; {gate.wait}"]
    service.batch([{"repo": "app", "argv": script, **long}])
    bell.wait()
    clock: Json = {"repo": "app", "argv": ["sleep", f"{2 * BOUND}"], "read_only": True}
    jobs: list[Json] = [clock, {"repo": "app", "argv": ["true"], **big}]
    one: Json = {"repo": "app", "argv": ["sleep", "0.1"], "labels": ["small"], **small}
    until, wanted, *others = service.batch(jobs + [one] * 100)
    service.wait(until)
    gate.open()
    assert service.end_of(wanted)["state"] == "succeeded"
    service.cli("cancel", "--label", "small", status=0)
    entries = service.events()
    queued = next(e.at for e in entries if (e.job, e.kind) == (wanted, "job_queued"))
    at = {e.job: e.at for e in entries if e.kind == "job_dispatched"}
    assert at[wanted] - queued >= 2 * BOUND
    overtook = [at[job] for job in others if at.get(job, at[wanted]) < at[wanted]]
    assert overtook
    assert max(overtook) - queued < 1.5 * BOUND


@pytest.mark.parametrize("agent", ["lives", "dies"])
def test_what_a_dead_job_held_is_free_after_a_crash(
    make_service: Make, agent: str
) -> None:
    """Q-04: use is computed from what lives, so another job with the claim starts."""
    service = make_service("[limits]\nworkers = 1\n")
    service.start()
    service.add("app")
    mark, bell = service.marker(), service.bell()
    claim = ("--claim", "exclusive:build-cache:x")
    dead = service.bash("app", f"{bell.ring}; sleep {mark}", *claim)
    bell.wait()
    service.until(dead, "job_running")
    job = service.show(dead)["pid"]
    if agent == "dies":
        os.kill(service.agent_pid, signal.SIGSTOP)  # it does not see its service go
    service.kill()
    with contextlib.suppress(ProcessLookupError):  # an agent that lives ends it too
        os.kill(job, signal.SIGKILL)
    if agent == "dies":
        os.kill(service.agent_pid, signal.SIGKILL)
    assert wait_until_ended(service.agent_pid)
    service.start()
    assert survivors(mark) == []
    capacity = service.json("status")["capacity"]
    assert capacity["workers"] == {"used": 0, "limit": 1, "jobs": []}
    assert service.show(dead)["state"] == "human_attention_required"
    after = service.bash("app", "true", *claim)
    assert service.end_of(after)["state"] == "succeeded"


def test_a_claim_that_nothing_can_meet_is_refused_at_once(
    service: LiveService,
) -> None:
    """Q-09: when it is submitted, in a batch, and when a job is edited."""
    gate = service.gate()
    service.bash("app", gate.wait)
    waits = service.bash("app", "true")
    claims = service.show(waits)["claims"]
    for options, problem in (
        (("--claim", "write:quota:5"), "'write:quota:5' has no known resource family"),
        (("--claim", "all:path:x"), "'all:path:x' has no known mode"),
        (("--provider", "nobody"), "'nobody' is no known provider"),
        (("--kind", "agents"), "'agents' is no kind of job"),
    ):
        words = ("submit", "--repo", "app", *options, "--", "true")
        assert problem in service.cli(*words, status=2).err
    refused = service.cli("edit", waits, "--claim", "write:quota:5", status=2)
    assert "has no known resource family (allowed: workspace, path," in refused.err
    assert len(service.json("jobs")) == 2
    assert service.show(waits)["claims"] == claims
    gate.open()
    assert service.end_of(waits)["state"] == "succeeded"


def test_claims_are_taken_all_at_once(service: LiveService) -> None:
    """Q-10: a hundred pairs that name two claims in opposite orders all finish."""
    pair = ["write:path:x", "exclusive:build-cache:y"]
    jobs: list[Json] = [
        {"repo": "app", "argv": ["true"], "claims": claims}
        for _ in range(100)
        for claims in (pair, pair[::-1])
    ]
    gate, bell = service.gate(), service.bell()
    halves = [
        service.bash("app", f"{bell.ring}; {gate.wait}", "--claim", claim)
        for claim in pair
    ]
    bell.wait(2)
    ids = service.batch(jobs)
    gate.open()
    ends = service.wait(*halves, *ids)
    assert [end["state"] for end in ends] == ["succeeded"] * 202
    running: set[str | None] = set()
    for entry in service.events():
        if entry.kind == "job_dispatched":
            assert entry.job in halves or not running
            running.add(entry.job)
        elif entry.kind == "job_succeeded":
            running.remove(entry.job)


def test_a_path_below_a_link_is_one_claim_before_it_exists(
    service: LiveService,
) -> None:
    """Q-12: links are followed as far as there are any, and the rest is kept."""
    app = service.root / "app"
    (app / "real").mkdir()
    (app / "link").symlink_to("real")
    (app / "there").symlink_to(app / "real" / "later")
    gate = service.gate()
    script = f"mkdir -p real/new/child; {gate.wait}"
    first = service.bash("app", script, "--claim", "write:path:link/new/child")
    waiting = [
        service.bash("app", "true", "--claim", f"write:path:{path}")
        for path in ("real/new/child", "./link/../real/new/child", "real/new/child/a")
    ]
    for job in waiting:
        wait = service.show(job)["waiting"]
        assert (wait["kind"], wait["holders"]) == ("claim", [first])
    # The same of a link to what does not exist, and of a checkout.
    service.bash("app", gate.wait, "--claim", "write:path:there/x")
    later = service.bash("app", "true", "--claim", "write:path:real/later/x")
    assert service.show(later)["waiting"]["kind"] == "claim"
    free = service.bash("app", "true", "--claim", "write:path:real/other")
    assert service.end_of(free)["state"] == "succeeded"
    gate.open()
    ends = service.wait(*waiting, later)
    assert {end["state"] for end in ends} == {"succeeded"}


def test_a_checkout_has_one_name_whatever_path_a_claim_gives(
    service: LiveService,
) -> None:
    """Q-11, Q-12: the workspace of a claim is a folder, not the text that names it."""
    app = service.root / "app"
    (service.root / "link").symlink_to(app)
    service.git("-C", app, "worktree", "add", "--quiet", "../linked")
    gate = service.gate()
    first = service.bash("app", gate.wait, "--claim", f"write:workspace:{app}")
    for path in (service.root / "link", f"{app}/.git/..", "../link", "."):
        job = service.bash("app", "true", "--claim", f"write:workspace:{path}")
        wait = service.show(job)["waiting"]
        assert (wait["kind"], wait["holders"]) == ("claim", [first])
    other = service.bash("app", "true", "--claim", "write:workspace:../linked")
    assert service.end_of(other)["state"] == "succeeded"
    gate.open()
