"""Secrets through the installed command line: jobs have them, and nobody else."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import contents
from tests.processes import command_lines

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.service import LiveService

VALUE = "s3cret/of the-house+42"
#: Says whether it has the value, without knowing it, and prints it in every way.
PRINTER = """
import os, sys, time
value = os.environb[b"TOKEN"]
os.write(1, b"one " + value + b" two\\n")
for byte in value:
    os.write(1, bytes([byte]))
os.write(1, b"\\n")
os.write(2, b"err " + value + value + b"\\n")
os.write(1, b"x" * 65530 + value + b"\\n")
sys.exit(len(value))
"""


def found_in(folder: Path, value: bytes) -> list[str]:
    """Files of a home that hold the value, its folder of secrets left out."""
    return [
        str(file.relative_to(folder))
        for file, content in contents(folder)
        if file.parent.name != "secrets" and value in content
    ]


def set_secret(service: LiveService, name: str, value: bytes) -> str:
    return service.cli("secret", "set", name, status=0, stdin=value).err


def test_a_job_has_its_secret_and_nothing_else_of_the_home_has_it(
    service: LiveService,
) -> None:
    set_secret(service, "TOKEN", f"{VALUE}\n".encode())
    gate, bell = service.gate(), service.bell()
    shell = f"{bell.ring}; {gate.wait}; python3 printer.py"
    (service.root / "app" / "printer.py").write_text(PRINTER)
    job = service.bash("app", shell, "--secret", "TOKEN", "--request-id", "r1")
    bell.wait()
    assert not [words for _, words in command_lines() if VALUE.encode() in words]
    gate.open()
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("failed", len(VALUE))
    assert end["secrets"] == ["TOKEN"]
    assert end["error"]["message"].endswith("err [redacted][redacted]")
    out = service.log(job, "--stream", "stdout")
    whole = b"one [redacted] two\n[redacted]\n" + b"x" * 65530 + b"[redacted]\n"
    assert out == whole
    assert end["usage"]["stdout_bytes"] == len(whole)
    assert service.log(job, "--stream", "stderr") == b"err [redacted][redacted]\n"
    said = [
        service.cli(*words, status=0).out
        for words in (
            ("show", job, "--json"),
            ("jobs", "--json"),
            ("secret", "list", "--json"),
            ("status", "--json"),
            ("settings", "show", "--json"),
        )
    ]
    assert VALUE not in "".join(said)
    assert VALUE not in str(service.events())
    assert found_in(service.home, VALUE.encode()) == []
    service.terminate()
    assert found_in(service.home, VALUE.encode()) == []
    secret = service.home / "secrets" / "TOKEN"
    assert secret.read_bytes() == VALUE.encode()
    assert (secret.stat().st_mode & 0o777, secret.parent.stat().st_mode & 0o777) == (
        0o600,
        0o700,
    )
    with sqlite3.connect(service.home / "store.sqlite") as store:
        assert VALUE not in "".join(store.iterdump())


def test_a_terminal_and_the_command_that_follows_are_masked_too(
    service: LiveService,
) -> None:
    set_secret(service, "TOKEN", f"{VALUE}\nits second line\n".encode())
    options = ("--secret", "TOKEN", "--after-job", 'echo "after $TOKEN"')
    job = service.bash("app", 'echo "$TOKEN"', *options)
    on_terminal = service.bash("app", 'echo "$TOKEN"', "--secret", "TOKEN", "--pty")
    service.wait(job, on_terminal)
    assert service.log(job) == b"[redacted]\nafter [redacted]\n"
    lines = service.log(on_terminal).replace(b"\r", b"").split(b"\n")
    assert set(lines) <= {b"[redacted]", b""}
    assert found_in(service.home, VALUE.encode()) == []
    assert found_in(service.home, b"its second line") == []


def test_secrets_that_are_in_every_log_do_not_eat_it(service: LiveService) -> None:
    """L-11: a letter, a brace, a common word, nothing, a newline."""
    for name, value in (("LETTER", b"e"), ("BRACE", b"{")):
        assert "fewer than 6 bytes" in set_secret(service, name, value)
    assert "is a short word" in set_secret(service, "WORD", b"docker")
    for value in (b"", b"\n"):
        refused = service.cli("secret", "set", "EMPTY", stdin=value)
        assert refused.status == 2
        assert "value: is empty" in refused.err
    names = ("LETTER", "BRACE", "WORD")
    words = [word for name in names for word in ("--secret", name)]
    text = "the letter e {braces} and docker-compose"
    job = service.bash("app", f"echo '{text}'; echo $LETTER $BRACE", *words)
    assert service.end_of(job)["state"] == "succeeded"
    assert service.log(job).decode() == (
        text.replace("docker", "[redacted]") + "\ne {\n"
    )


def test_what_is_not_there_is_named_at_once_or_when_the_job_starts(
    service: LiveService,
) -> None:
    for words in (("--secret", "TOKEN"), ("--secret", "FORGE_JOB_ID")):
        refused = service.cli("submit", "--repo", "app", *words, "--", "true")
        assert (refused.status, refused.out) == (2, "")
        assert refused.err.startswith("forge-actors: secrets: ")
    set_secret(service, "TOKEN", VALUE.encode())
    gate, bell = service.gate(), service.bell()
    first = service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    second = service.bash("app", "true", "--secret", "TOKEN")
    third = service.bash("app", "true", "--secret", "TOKEN")
    service.cli("secret", "remove", "TOKEN", status=0)
    gate.open()
    assert service.end_of(first)["state"] == "succeeded"
    for job in (second, third):
        end = service.end_of(job)
        assert (end["state"], end["error"]["code"]) == ("failed", "WORKER_START_FAILED")
        assert "there is no secret 'TOKEN'" in end["error"]["message"]
    assert "no secret 'TOKEN'" in service.why(second)


@pytest.mark.parametrize("served", [True, False])
def test_a_secret_is_set_with_and_without_a_service(
    served: bool, service: LiveService
) -> None:
    if not served:
        service.terminate()
    set_secret(service, "TOKEN", VALUE.encode())
    [entry] = service.json("secret", "list")
    assert entry["name"] == "TOKEN"
    service.cli("secret", "remove", "TOKEN", status=0)
    assert service.json("secret", "list") == []
