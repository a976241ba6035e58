"""What the tests of verbs share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.cli import main as program

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from forge_actors.testing.control import FakeControl


class Shell:
    """Runs verbs against one home and keeps what they print."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._home = home
        self._capsys = capsys

    def now(self, *words: str) -> tuple[int, str, str]:
        """The exit status, standard output and standard error of a call."""
        place = words.index("--") if "--" in words else len(words)
        home = ("--home", str(self._home))
        status = program.main([*words[:place], *home, *words[place:]])
        printed = self._capsys.readouterr()
        return status, printed.out, printed.err

    async def __call__(self, *words: str) -> tuple[int, str, str]:
        return await trio.to_thread.run_sync(self.now, *words, abandon_on_cancel=True)

    async def submit(self, *options: str) -> str:
        """The id of a new job."""
        status, out, err = await self("submit", *options, "--", "x")
        assert status == 0, err
        return out.strip()


def finish(control: FakeControl, job: str, data: bytes = b"") -> None:
    control.write(job, data)
    control.end(job)
