"""What is secret is planted in all that an agent and its check can print, and is
looked for in all that is kept and told."""

from __future__ import annotations

import os
import secrets
import tarfile
from typing import TYPE_CHECKING

from forge_actors.client.sync import Service
from forge_actors.domain.errors import ForgeError
from tests.acceptance.bench import contents
from tests.processes import command_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest

    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import LiveService

#: Of these there is none here that is called as the repository.
OF_OTHERS = {"schedules", "templates", "controllers"}


def test_no_key_no_secret_and_no_prompt_is_kept_or_told(
    claude: tuple[LiveService, FakeAgent], monkeypatch: pytest.MonkeyPatch
) -> None:
    service, fake = claude
    prompt, key, token = (f"mark-{n}-{secrets.token_hex(12)}" for n in ("p", "k", "t"))
    service.terminate()
    monkeypatch.setenv("ANTHROPIC_API_KEY", key)
    service.start()
    service.cli("secret", "set", "TOKEN", stdin=token.encode(), status=0)
    gate, file = service.root / "pipe", service.root / "prompt.md"
    os.mkfifo(gate)
    file.write_text(f"Do it. {prompt}")
    fake.play("leaks", gate=str(gate))
    check = "echo told $TOKEN; echo told $TOKEN >&2; env; exit 3"
    job = service.submit(
        *("--repo", "app", "--agent", "claude", "--prompt-file", file),
        *("--secret", "TOKEN", "--verify", check, "--verify-rounds", "1"),
    )
    for attempt in (1, 3):
        starts = (
            e for e in service.follow() if (e.job, e.kind) == (job, "job_running")
        )
        for _ in range(attempt):
            next(starts)
        lines = b" ".join(words for _, words in command_lines())
        assert str(fake.path).encode() in lines
        assert not [mark for mark in (prompt, key, token) if mark.encode() in lines]
        gate.write_bytes(b"")
    end = service.end_of(job)
    assert end["error"]["code"] == "VERIFY_FAILED"
    assert "told" in end["error"]["message"]
    told = [
        *(
            service.cli(*words.split(), status=0).out
            for words in (
                f"show {job}",
                f"show {job} --json",
                "jobs --json",
                f"why {job}",
                "events --json",
                "inbox --json",
                "usage --json",
                "status --json",
                # What the pages ask for besides.
                "repo list --json",
                "worktree list --json",
                "timeline --json",
                f"diff {job}",
            )
        ),
        *(
            service.log(job, "--attempt", str(n), *stream).decode(errors="replace")
            for n in range(1, 5)
            for stream in ((), ("--stream", "stderr"))
        ),
    ]
    told += refusals(service, job, prompt)
    told += answers(service, job)
    told += bundle(service)
    assert "TOKEN=" in "".join(told), "the check had it"
    assert '"ANTHROPIC_API_KEY"' in "".join(told), "the agent had it"
    for mark in (prompt, key, token):
        assert not [text for text in told if mark in text]
        kept = list(contents(service.home))
        looked_at = {path.name for path, _ in kept}
        assert {"store.sqlite", "store.sqlite-wal", "service.log"} <= looked_at
        found = [path for path, content in kept if mark.encode() in content]
        own = {prompt: ["prompts"], key: [], token: ["secrets"]}[mark]
        assert sorted({p.parent.name for p in found}) == own, found
        assert all(p.stat().st_mode & 0o077 == 0 for p in found)


def refusals(service: LiveService, job: str, prompt: str) -> Iterator[str]:
    """What is said to somebody whose request cannot be met."""
    words = ("submit", "--prompt", prompt, "--agent")
    for refused in (
        (*words, "nobody", "--repo", "app"),
        (*words, "claude", "--repo", "nowhere"),
        (*words, "claude", "--repo", "app", "--kind", "check"),
        ("continue", "nobody", prompt),
        ("answer", job, prompt),
    ):
        done = service.cli(*refused)
        assert done.status in (2, 3), refused
        yield done.out + done.err
    for field in ("argv", "agent", "labels", "unknown"):
        body = {"repo": "app", "argv": [], "agent": "claude", "prompt": prompt}
        try:
            Service(str(service.home)).post("jobs", body={"jobs": [{**body, field: 7}]})
        except ForgeError as error:
            yield str(error)
        else:
            raise AssertionError(f"{field} was taken")


def answers(service: LiveService, job: str) -> Iterator[str]:
    """Everything that the service answers about the job, and of the home as a whole:
    pages have nothing else."""
    served = Service(str(service.home))
    names = {"{job}": job, "{stream}": "both", "{name}": "app"}
    asked = 0
    for path, methods in served.get("openapi.json")["paths"].items():
        parts = [names.get(part, part) for part in path.split("/")[2:]]
        mine = not any("{" in part for part in parts)
        if "get" in methods and mine and parts[0] not in OF_OTHERS:
            try:
                answer = b"".join(served.stream("GET", tuple(parts)))
            except ForgeError as error:
                yield str(error)  # there is nothing of that kind
            else:
                yield answer.decode()
                asked += 1
    assert asked > 15, "it is looked at from all sides"


def bundle(service: LiveService) -> Iterator[str]:
    """What `doctor` collects for somebody else to look at."""
    path = service.root / "bundle.tar.gz"
    service.cli("doctor", "--bundle", str(path), status=0)
    with tarfile.open(path) as archive:
        for name in archive.getnames():
            part = archive.extractfile(name)
            assert part is not None
            yield part.read().decode()
