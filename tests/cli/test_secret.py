"""`secret`: values come from standard input or a hidden prompt and are never shown."""

from __future__ import annotations

import io
import json
import os
import pty
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from forge_actors.cli import main as program

if TYPE_CHECKING:
    from pathlib import Path

VALUE = "s3cret-of-the-house"
PROGRAM = [sys.executable, "-m", "forge_actors"]


class Shell:
    def __init__(
        self,
        home: Path,
        capsys: pytest.CaptureFixture[str],
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        self.home = home
        self._capsys = capsys
        self._monkeypatch = monkeypatch

    def __call__(self, *words: str, stdin: bytes = b"") -> tuple[int, str, str]:
        text = io.TextIOWrapper(io.BytesIO(stdin))
        self._monkeypatch.setattr(sys, "stdin", text)
        status = program.main([*words, "--home", str(self.home)])
        printed = self._capsys.readouterr()
        assert VALUE not in printed.out + printed.err
        return status, printed.out, printed.err

    def value(self, name: str) -> bytes:
        return (self.home / "secrets" / name).read_bytes()


@pytest.fixture
def shell(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> Shell:
    return Shell(tmp_path / "home", capsys, monkeypatch)


def test_a_secret_is_set_listed_and_removed_without_a_service(shell: Shell) -> None:
    assert shell("secret", "list") == (0, "", "forge-actors: no secret is set\n")
    told = shell("secret", "set", "TOKEN", stdin=f"{VALUE}\n".encode())
    assert told == (0, "TOKEN\n", "")
    assert shell.value("TOKEN") == VALUE.encode()
    status, out, err = shell("secret", "list")
    assert (status, err) == (0, "")
    assert out.splitlines()[1].startswith("TOKEN  20")
    [entry] = json.loads(shell("secret", "list", "--json")[1])
    assert entry["name"] == "TOKEN"
    assert entry["changed_at"].endswith("Z")
    assert shell("secret", "remove", "TOKEN") == (0, "TOKEN\n", "")
    assert json.loads(shell("secret", "list", "--json")[1]) == []


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"e", "fewer than 6 bytes"),
        (b"{", "fewer than 6 bytes"),
        (b"12345", "fewer than 6 bytes"),
        (b"docker", "is a short word"),
    ],
)
def test_a_value_that_tells_little_is_warned_of(
    value: bytes, words: str, shell: Shell
) -> None:
    """L-11"""
    status, out, err = shell("secret", "set", "WORD", stdin=value)
    assert (status, out) == (0, "WORD\n")
    assert words in err
    assert value.decode() not in err.replace("WORD", "").split()
    assert shell.value("WORD") == value


@pytest.mark.parametrize("value", [b"", b"\n", b" \t\n", b"a\0b", b"x" * 40_000])
def test_a_value_that_cannot_be_one_is_refused_and_nothing_is_kept(
    value: bytes, shell: Shell
) -> None:
    status, out, err = shell("secret", "set", "TOKEN", stdin=value)
    assert (status, out) == (2, "")
    assert err.startswith("forge-actors: value: ")
    assert err.count("\n") == 1
    assert not (shell.home / "secrets").exists()


@pytest.mark.parametrize(
    ("words", "status", "problem"),
    [
        (("set",), 2, "give a name; the value is read from standard input"),
        (("set", "A", VALUE), 2, "give one name and nothing else"),
        (("set", "9A"), 2, "name: '9A' cannot name a variable (allowed: a letter"),
        (("set", "FORGE_A"), 2, "name: 'FORGE_A' is set by the service itself"),
        (("remove", "A"), 2, "there is no secret 'A'; none is set"),
        (("remove", "../A"), 2, "name: '../A' cannot name a variable"),
    ],
)
def test_bad_input_is_one_line_that_repeats_no_value(
    words: tuple[str, ...], status: int, problem: str, shell: Shell
) -> None:
    done = shell("secret", *words, stdin=VALUE.encode())
    assert done[:2] == (status, "")
    assert done[2].startswith(f"forge-actors: {problem}")
    assert done[2].count("\n") == 1


def test_a_home_that_takes_nothing_is_one_clear_error(shell: Shell) -> None:
    shell.home.mkdir()
    (shell.home / "secrets").touch()
    status, out, err = shell("secret", "set", "TOKEN", stdin=VALUE.encode())
    assert (status, out) == (1, "")
    assert err.startswith("forge-actors: the secret TOKEN could not be saved: ")
    assert err.count("\n") == 1


def test_at_a_terminal_the_value_is_asked_for_and_not_echoed(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    home = str(tmp_path)
    child = subprocess.Popen(
        [*PROGRAM, "secret", "set", "TOKEN", "--home", home],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    shown = b""
    while b"value of TOKEN: " not in shown:
        shown += os.read(ours, 1024)
    os.write(ours, f"{VALUE}\n".encode())
    with open(ours, "rb", buffering=0) as terminal:
        try:
            while data := terminal.read(1024):
                shown += data
        except OSError:
            pass  # nobody has the other side any more
    assert child.wait() == 0
    assert VALUE.encode() not in shown
    assert (tmp_path / "secrets" / "TOKEN").read_bytes() == VALUE.encode()
