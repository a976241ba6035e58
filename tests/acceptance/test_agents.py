"""Jobs of agents on a real service."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import NAMES, FakeAgent, install
from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService


def test_what_an_agent_told_while_no_service_was_there_is_read_by_the_next(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    gate = service.root / "pipe"
    os.mkfifo(gate)
    fake.play("acts", gate=str(gate), text="the answer")
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    pid = service.until(job, "job_running").data["pid"]
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    service.start()
    end = service.end_of(job)
    assert end["state"] == "succeeded"
    assert end["agent"]["text"] == "the answer"
    assert end["agent"]["usage"]["output_tokens"] == 7
    first = json.loads(service.log(job).splitlines()[0])
    assert end["agent"]["session"] == first["session_id"]


def test_an_agent_that_failed_while_no_service_was_there_has_not_succeeded(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    gate = service.root / "pipe"
    os.mkfifo(gate)
    fake.play("no_end", gate=str(gate))
    job = service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    pid = service.until(job, "job_running").data["pid"]
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    service.start()
    end = service.end_of(job)
    assert (end["exit_code"], end["state"]) == (0, "human_attention_required")
    assert end["error"]["code"] == "INTERRUPTED"


def test_a_follow_up_outlives_the_kill_of_the_service(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    fake.play("success", text="It is half done.")
    begun = service.end_of(
        service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    )
    gate = service.root / "pipe"
    os.mkfifo(gate)
    fake.play("echoes", gate=str(gate))
    made = service.cli("continue", begun["id"], "More.", status=0).out.strip()
    pid = service.until(made, "job_running").data["pid"]
    told = service.until(made, "agent_session").data
    session = begun["agent"]["session"]
    assert (told["session"], told["how"]) == (session, "resumed")
    [listed] = [job for job in service.json("jobs") if job["id"] == made]
    assert listed["agent"]["session"] == session
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    service.start()
    end = service.end_of(made)
    assert (end["state"], end["agent"]["text"]) == ("succeeded", f"More. [{session}]")
    assert end["agent"]["continues"] == begun["id"]
    assert end["worktree"]["path"] == begun["worktree"]["path"]
    fake.play("echoes")
    file = service.root / "more.md"
    file.write_text("from a file")
    for words, asked in (
        (["-"], "from the input"),
        (["--prompt-file", "-"], "from the input"),
        (["--prompt-file", file], "from a file"),
    ):
        done = service.cli("continue", made, *words, status=0, stdin=b"from the input")
        made = done.out.strip()
        assert service.end_of(made)["agent"]["text"] == f"{asked} [{session}]"
    assert service.cli("continue", made).status == 2
    [again] = service.cli("retry", "--resume", made, status=0).out.split()
    assert service.end_of(again)["agent"]["session"] == session


@pytest.mark.parametrize("name", NAMES)
def test_a_session_that_is_gone_is_begun_anew_though_the_service_is_killed(
    make_service: Callable[[str], LiveService],
    monkeypatch: pytest.MonkeyPatch,
    name: str,
) -> None:
    service = make_service("")
    fake = install(service.root / "bin", name)
    path = f"{fake.path.parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("HOME", str(service.root))
    service.start()
    service.add("app")
    fake.play("success", text="It is half done.")
    begun = service.end_of(
        service.submit("--repo", "app", "--agent", name, "--prompt", "Go.")
    )
    gate = service.root / "pipe"
    os.mkfifo(gate)
    fake.play("forgets", gate=str(gate))
    made = service.cli("continue", begun["id"], "More.", status=0).out.strip()
    # Nobody is there to see that the first attempt does nothing.
    pid = service.until(made, "job_running").data["pid"]
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    fake.play("forgets")
    service.start()
    end = service.end_of(made)
    errors = [e.data.get("error") for e in service.events() if e.job == made]
    assert [e["code"] for e in errors if e is not None] == ["SESSION_GONE"]
    assert (end["state"], end["attempt"]) == ("succeeded", 2)
    for words in ("Go.", "It is half done.", "More."):
        assert words in end["agent"]["text"]
    assert end["agent"]["anew"]


def test_a_prompt_comes_from_the_line_a_file_or_the_input(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, _ = claude
    file = service.root / "prompt.md"
    file.write_text("from a file \u00e9\n")
    answer = ("--repo", "app", "--agent", "command")
    behind = ("--", "cat")
    jobs = [
        service.submit(*answer, "--prompt", "from the line", *behind),
        service.submit(*answer, "--prompt-file", file, *behind),
    ]
    for word in (["--prompt-file", "-"], ["-"]):
        done = service.cli(
            "submit", *answer, *word, *behind, status=0, stdin=b"from the input"
        )
        jobs.append(done.out.strip())
    texts = [end["agent"]["text"] for end in service.wait(*jobs)]
    assert texts == ["from the line", "from a file \u00e9", *["from the input"] * 2]


def test_a_batch_may_have_agents(claude: tuple[LiveService, FakeAgent]) -> None:
    service, _ = claude
    ask = {"repo": "app", "argv": [], "agent": "claude", "prompt": "Go."}
    jobs = service.batch([ask, {"repo": "app", "argv": ["true"]}, ask])
    ends = service.wait(*jobs)
    assert [end["state"] for end in ends] == ["succeeded"] * 3
    assert [(end["agent"] or {}).get("text") for end in ends] == ["done", None, "done"]
    line = json.dumps({**ask, "agent": "clade"}).encode()
    refused = service.cli("submit", "--batch", "-", stdin=line)
    assert (refused.status, "no known agent" in refused.err) == (2, True)


def test_one_prompt_is_asked_for_and_only_text(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, _ = claude
    words = ("submit", "--repo", "app", "--agent", "claude")
    twice = service.cli(*words, "--prompt", "a", "--prompt-file", "b")
    assert twice.status == 2
    missing = service.cli(*words)
    assert (missing.status, "prompt: is missing" in missing.err) == (2, True)
    nowhere = service.cli(*words, "--prompt-file", "/nowhere")
    assert (nowhere.status, "/nowhere" in nowhere.err) == (2, True)
    bytes_ = service.cli(*words, "-", stdin=b"\xff\xfe")
    assert (bytes_.status, "UTF-8" in bytes_.err) == (2, True)
