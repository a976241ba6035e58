"""Runs of an EPIC on a terminal: what is shown, and what its keys do to workers."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.epic_stand import LIGHT, Stand
from tests.acceptance.screen import Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

PROGRAM = """
import sys
from forge_actors.cli.main import main
from forge_actors.runtime import epic_run
SCRIPT = {script!r}
{light}
sys.exit(main())
"""
#: It has written down which descriptors it has and what they are of, and what it sees.
WORKER = """\
ls -l /proc/$$/fd > {root}/open
env > {root}/env
trap 'echo interrupted >> {trace}; {ring}' INT
{ring}
while ! read x < {gate}; do test -p {gate} || exit 0; done"""
#: A title that would rename the window, colour the screen and turn the line round.
HOSTILE = r'"\u001b]0;owned\u0007\u001b[31mStart\u202e \u001b[2Jhere"'


@pytest.fixture
def stand() -> Iterator[Stand]:
    made = Stand()
    yield made
    made.close()


def test_keys_of_a_terminal_reach_a_worker_once_and_a_title_does_nothing_to_it(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, bell = stand.gate(), stand.bell()
    monkeypatch.setenv("GH_TOKEN", "ghp_secret")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    stand.write_plan(f"[[issue]]\nnumber = 1\ntitle = {HOSTILE}\n")
    stand.settings()
    script = WORKER.format(
        root=stand.root, trace=stand.trace, ring=bell.ring, gate=gate.path
    )
    program = PROGRAM.format(script=script, light=LIGHT)
    words = ["--config", str(stand.config), "--checkout", str(stand.checkout)]
    terminal = Terminal(
        *("epic", "run", str(stand.plan), *words),
        program=(sys.executable, "-c", program),
    )
    try:
        shown = terminal.until("#1 running")
        assert "EPIC #1000 of plan plan  E" in shown
        assert "Start here" in shown
        bell.wait()
        terminal.type("\x03")
        terminal.until("interrupted: nothing more begins")
        bell.wait()
        assert stand.traced == ["interrupted"]
        refused = Terminal(*("epic", "resume", str(stand.plan), *words))
        try:
            refused.until("another EPIC run")
            assert refused.ended() == 3
        finally:
            refused.close()
        terminal.type("\x03")
        bell.wait()
        assert terminal.ended() == 130
    finally:
        gate.open()
        terminal.close()
    for trick in (b"\x1b]0;", b"\x1b[31m", b"\x1b[2J", b"\xe2\x80\xae"):
        assert trick not in terminal.printed
    assert stand.traced == ["interrupted"] * 2
    stand.let_go()
    listed = (stand.root / "open").read_text()
    opened = [line.split(" -> ")[1] for line in listed.splitlines() if "->" in line]
    log = stand.kept / "issues" / "1" / "workers" / "1.log"
    lock = stand.kept / "issues" / "1" / "run.lock"
    opened.remove(str(stand.root / "open"))  # by itself, to write this
    wanted = ["/dev/null", str(log), str(log), str(stand.common), str(lock)]
    assert sorted(opened) == sorted(wanted)
    environ = (stand.root / "env").read_text()
    assert "secret" not in environ
    assert "PATH=" in environ
