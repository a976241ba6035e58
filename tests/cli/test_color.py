"""Colours: on a terminal, unless somebody does not want them, and never in the way."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from forge_actors.cli import text
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.cli.shell import Shell

RED, GREEN = "\x1b[31m", "\x1b[32m"
SEQUENCE = re.compile(r"\x1b\[[0-9;]*m")


def use_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr("forge_actors.cli.jobs.terminal_width", lambda: 100)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


async def test_a_pipe_gets_no_colour_unless_it_is_asked_for(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.end(job, "failed", exit_code=1)
        for verb in ("jobs", "status", f"why {job}"):
            plain = (await shell(*verb.split()))[1]
            assert "\x1b" not in plain
            painted = (await shell(*verb.split(), "--color", "always"))[1]
            assert "\x1b" in painted
            assert SEQUENCE.sub("", painted) == plain
        assert f"{RED}failed\x1b[0m" in (await shell("jobs", "--color", "always"))[1]


async def test_a_terminal_gets_colours(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_a_terminal(monkeypatch)
    async with fake_service(tmp_path) as control:
        control.end(await shell.submit())
        assert GREEN in (await shell("jobs"))[1]
        assert "\x1b" not in (await shell("jobs", "--color", "never"))[1]
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in (await shell("jobs"))[1]
        monkeypatch.setenv("NO_COLOR", "")
        monkeypatch.setenv("TERM", "dumb")
        assert "\x1b" not in (await shell("jobs"))[1]


def test_paint_takes_no_columns() -> None:
    head = ("ID", "STATE", "NAME")
    rows = [("a", "failed", "x" * 50), ("b", "queued", "y")]

    def paint(cell: str) -> str:
        return f"{RED}{cell}\x1b[0m" if cell == "failed" else cell

    for columns in (None, 40, 20, 10, 5):
        plain = text.table(head, rows, columns=columns, flexible=(2,))
        painted = text.table(
            head, rows, columns=columns, flexible=(2,), paint=(1, paint)
        )
        assert [SEQUENCE.sub("", line) for line in painted] == plain
    assert sum("\x1b" in line for line in painted) == 0  # it was cut away
    wide = text.table(head, rows, columns=None, paint=(1, paint))
    assert wide[1].startswith(f"a   {RED}failed\x1b[0m  xxx")
