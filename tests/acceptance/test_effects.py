"""What jobs that no person began may do to the outside, on a real service."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.service import LiveService

FORGE = shlex.join([sys.executable, "-m", "forge_actors"])
NIGHTLY = ("--origin", "schedule:nightly")
PUSH = "git push -q origin HEAD:refs/heads/pushed"


@pytest.fixture
def origin(service: LiveService) -> Path:
    """A bare repository that jobs of `app` could push to."""
    bare = service.root / "origin.git"
    checkout = service.show(service.bash("app", "true"))["cwd"]
    for argv in (
        ("git", "init", "-q", "--bare", str(bare)),
        ("git", "-C", checkout, "remote", "add", "origin", str(bare)),
    ):
        subprocess.run(argv, check=True)
    return bare


def pushed(bare: Path) -> bool:
    argv = ["git", "-C", str(bare), "for-each-ref"]
    return bool(subprocess.run(argv, check=True, capture_output=True).stdout)


def inbox(service: LiveService) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = json.loads(
        service.cli("inbox", "--json", status=0).out
    )["items"]
    return items


def test_a_declared_effect_waits_for_a_person_also_over_a_crash(
    service: LiveService, origin: Path
) -> None:
    job = service.bash("app", PUSH, *NIGHTLY, "--effects", "push")
    service.until(job, "job_waiting_for_approval")
    service.kill()
    assert f"approval:{job}" in service.cli("inbox", status=0).out
    service.start()
    [item] = inbox(service)
    assert (item["kind"], item["job"]) == ("approval", job)
    assert item["evidence"]["effects"] == "push"
    assert item["evidence"]["began"] == "schedule:nightly"
    assert "allow it to push: schedule:nightly began it" in service.why(job)
    assert not pushed(origin)
    service.cli("approve", job, status=0)
    service.kill()
    service.start()
    end = service.end_of(job)
    assert (end["state"], pushed(origin)) == ("succeeded", True)
    [approval] = end["effects"]["approvals"]
    assert (approval["effects"], approval["how"]) == (["push"], "command line")
    assert all((approval["by"], approval["at"]))
    again = service.cli("approve", job)
    assert (again.status, "asks nothing" in again.err) == (3, True)
    assert inbox(service) == []


def test_a_denied_one_never_runs(service: LiveService, origin: Path) -> None:
    job = service.bash("app", PUSH, *NIGHTLY)
    after = service.bash("app", "true", "--after", job)
    service.until(job, "job_waiting_for_approval")
    answered = service.cli("answer", job, "Go on.")
    assert (answered.status, "waits for a person to allow" in answered.err) == (3, True)
    service.cli("deny", job, "--reason", "not tonight", status=0)
    end = service.end_of(job)
    assert (end["error"]["code"], end["attempt"]) == ("DENIED", 0)
    assert service.end_of(after)["error"]["code"] == "DEPENDENCY_BLOCKED"
    assert not pushed(origin)


def test_what_its_definition_allows_needs_nobody(
    service: LiveService, origin: Path
) -> None:
    options = (*NIGHTLY, "--effects", "push", "--authorise", "push")
    job = service.bash("app", PUSH, *options)
    assert service.end_of(job)["state"] == "succeeded"
    assert pushed(origin)


def test_a_person_pushes_as_ever(service: LiveService, origin: Path) -> None:
    job = service.bash("app", f"{PUSH} && command -v git")
    end = service.end_of(job)
    assert (end["state"], end["effects"]) == ("succeeded", None)
    assert str(service.home) not in service.log(job).decode()
    assert pushed(origin)


def test_what_a_job_submits_has_no_more_authority_than_it_has(
    service: LiveService, origin: Path
) -> None:
    """It neither declares anything, nor shows it in its command."""
    hidden = "p=pu; git ${p}sh -q origin HEAD:refs/heads/pushed"
    child = f"{FORGE} submit --repo app -- bash -c {shlex.quote(hidden)}"
    parent = service.bash("app", child, *NIGHTLY)
    assert service.end_of(parent)["state"] == "succeeded"
    job = service.log(parent).decode().strip()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("failed", 77)
    assert not pushed(origin)
    told = service.log(job, "--stderr").decode()
    assert f"forge-actors retry {job} --authorise push" in told
    assert end["effects"]["began"] == "schedule:nightly"
    assert end["effects"]["refused"] == ["git push (push)"]
    assert "only git and gh are watched" in end["effects"]["unseen"]
    assert "It was kept from git push (push)." in service.why(job)
    [item] = inbox(service)
    assert (item["kind"], item["job"]) == ("effect", job)
    assert item["actions"][1] == f"forge-actors retry {job} --authorise push"
    [event] = [each for each in service.events() if each.kind == "effect_refused"]
    assert (event.job, event.data["effects"]) == (job, ["push"])
    again = service.cli("retry", job, "--authorise", "push", status=0).out.strip()
    retried = service.end_of(again)
    assert (retried["state"], pushed(origin)) == ("succeeded", True)
    assert retried["effects"]["approvals"][0]["how"] == "command line"
    assert inbox(service) == []


@pytest.mark.parametrize(
    "verb", ["approve {job}", "deny {job}", "retry {old} --authorise push"]
)
def test_no_job_decides_what_another_one_may_do(
    service: LiveService, verb: str
) -> None:
    old = service.bash("app", "exit 1", *NIGHTLY, "--read-only")
    service.end_of(old)
    job = service.bash("app", PUSH, *NIGHTLY, "--read-only")
    words = verb.format(job=job, old=old)
    for options in ((), NIGHTLY):
        asked = service.bash("app", f"{FORGE} {words}", "--read-only", *options)
        assert service.end_of(asked)["exit_code"] == 3
        assert "only a person can" in service.log(asked, "--stderr").decode()
    assert service.show(job)["state"] == "waiting_for_approval"


def test_no_job_allows_or_repeats_more_than_it_may(
    service: LiveService, origin: Path
) -> None:
    person = service.bash("app", f"test -e go && {PUSH}", "--read-only")
    assert service.end_of(person)["state"] == "failed"
    script = (
        f"{FORGE} submit --repo app --authorise push -- true;"
        f"touch go; {FORGE} retry {person}"
    )
    parent = service.bash("app", script, *NIGHTLY, "--read-only")
    assert service.end_of(parent)["state"] == "succeeded"
    assert "it can allow no other job that" in service.log(parent, "--stderr").decode()
    retried = service.show(service.log(parent, "--stdout").decode().strip())
    assert retried["state"] == "waiting_for_approval"
    assert not pushed(origin)


def test_the_wrappers_can_be_had_by_all_or_by_none(
    service: LiveService, origin: Path
) -> None:
    settings = service.home / "settings.toml"
    settings.write_text('[effects]\nwrappers = "all"\n')
    service.cli("settings", "reload", status=0)
    job = service.bash("app", PUSH)
    assert service.end_of(job)["exit_code"] == 77
    job = service.bash("app", PUSH, "--effects", "push")
    assert service.end_of(job)["state"] == "succeeded"
    settings.write_text('[effects]\nwrappers = "none"\n')
    service.cli("settings", "reload", status=0)
    quiet = service.bash("app", "g=git; command -v $g", *NIGHTLY)
    assert service.end_of(quiet)["state"] == "succeeded"
    assert str(service.home) not in service.log(quiet).decode()
