"""Jobs that run after others: each comes to an end, whatever becomes of those."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forge_actors.client.sync import Service as Connection
from forge_actors.domain.errors import InvalidInput
from tests.acceptance.service import call

if TYPE_CHECKING:
    from tests.acceptance.bench import Bench
    from tests.acceptance.service import Json, LiveService


def test_whatever_a_job_runs_after_comes_to_it_leaves_its_waiting_state(
    service: LiveService,
) -> None:
    """Q-07: only success lets it start; every other end ends it, with the reason."""
    gate = service.gate()
    blocker = service.bash("app", gate.wait, "--read-only")
    service.until(blocker, "job_running")
    option = ("--read-only",)
    firsts = {
        "succeeded": service.bash("app", gate.wait, *option),
        "failed": service.bash("app", f"{gate.wait}; exit 3", *option),
        "timed_out": service.bash("app", "sleep 60", *option, "--timeout", "1s"),
        "cancelled": service.bash("app", "true", *option, "--after", blocker),
        "human_attention_required": service.bash(
            "app", f"{gate.wait}; kill -9 $$", *option, "--replay", "never"
        ),
    }
    after = {
        state: service.bash("app", "true", *option, "--after", first)
        for state, first in firsts.items()
    }
    of_two = service.bash(
        *("app", "true", *option, "--after", firsts["succeeded"]),
        *("--after", firsts["cancelled"]),
    )
    assert service.show(after["cancelled"])["waiting"]["kind"] == "dependency"
    service.cli("cancel", firsts["cancelled"], status=0)
    # At once, not with the next look at everything, and of two also the other one.
    for job in (after["cancelled"], of_two):
        assert service.show(job)["state"] == "human_attention_required"
    gate.open()
    ends = service.wait(*firsts.values(), *after.values())
    assert [end["state"] for end in ends[:5]] == list(firsts)
    for end, (state, first) in zip(ends[5:], firsts.items(), strict=True):
        if state == "succeeded":
            assert end["state"] == "succeeded"
            continue
        assert end["state"] == "human_attention_required"
        error = end["error"]
        assert error["code"] == "DEPENDENCY_BLOCKED"
        assert error["message"] == f"it runs after {first}, which is {state}"
        assert f"it runs after {first}, which is {state}" in service.why(end["id"])
    cancelled = service.submit("--repo", "app", "--", "sleep", "60")
    follows = service.submit("--repo", "app", "--after", cancelled, "--", "true")
    service.until(cancelled, "job_running")
    service.cli("cancel", cancelled, status=0)
    assert service.end_of(follows)["error"]["code"] == "DEPENDENCY_BLOCKED"


def test_a_job_behind_one_that_a_crash_interrupted_is_told_too(
    service: LiveService,
) -> None:
    """Q-07: an end that only the next service decides on is one like the others."""
    first = service.bash("app", "sleep 60")
    last = service.submit("--repo", "app", "--after", first, "--", "true")
    service.until(first, "job_running")
    service.crash()
    service.start()
    assert service.end_of(last)["error"]["message"] == (
        f"it runs after {first}, which is human_attention_required"
    )


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_cycle_is_refused_with_its_path(
    service: LiveService, bench: Bench, size: int
) -> None:
    """Q-08: in a batch and in a file of jobs; nothing of them is accepted."""
    names = [f"job-{number}" for number in range(size)]
    before = [names[-1], *names[:-1]]
    jobs: list[Json] = [
        {"repo": "app", "argv": ["true"], "name": name, "after": [other]}
        for name, other in zip(names, before, strict=True)
    ]
    path = " -> ".join([names[0], *reversed(names)])
    batch = "\n".join(map(json.dumps, jobs)).encode()
    log = service.events()
    refused = service.cli("submit", "--batch", "-", status=2, stdin=batch)
    assert refused.err.endswith(f"after: is a cycle: {path}\n")
    assert (service.json("jobs"), service.events()) == ([], log)

    lines = ["[[repository]]", 'name = "app"', f'path = "{service.root}/app"']
    for name, other in zip(names, before, strict=True):
        lines += ["[[job]]", f'name = "{name}"', 'repo = "app"', 'argv = ["true"]']
        lines += [f'after = ["{other}"]']
    file = bench.root / "jobs.toml"
    file.write_text("\n".join(lines))
    refused = call("run", file, status=2)
    assert f"after: is a cycle: {path}" in refused.err


def test_what_a_job_runs_after_cannot_be_edited(service: LiveService) -> None:
    """Q-08: so no edit can make a cycle, and the job stays as it is."""
    gate = service.gate()
    blocker = service.bash("app", gate.wait)
    first = service.submit("--repo", "app", "--", "true")
    second = service.submit("--repo", "app", "--after", first, "--", "true")
    refused = service.cli("edit", first, "--after", second, status=2)
    assert "--after" in refused.err
    connection = Connection(str(service.home))
    with pytest.raises(InvalidInput, match="after"):
        connection.post("jobs", first, "edit", body={"after": [second]})
    assert [service.show(job)["after"] for job in (first, second)] == [[], [first]]
    assert "job_edited" not in {entry.kind for entry in service.events()}
    gate.open()
    ends = service.wait(blocker, first, second)
    assert {end["state"] for end in ends} == {"succeeded"}
