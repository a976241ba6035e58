"""`watch` where it cannot draw, and without what it draws with."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest

from forge_actors.cli import watch

if TYPE_CHECKING:
    from tests.cli.shell import Shell


class Screen(io.StringIO):
    """Somewhere to print to that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_without_its_extra_it_says_how_to_install_it(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Screen())
    monkeypatch.setattr("sys.stdout", Screen())
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(watch, "find_spec", lambda name: None)
    status, _, err = shell.now("watch")
    assert status == 3
    assert "pip install 'forge-actors[tui]'" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("words", [(), ("--json",)])
def test_without_a_terminal_it_is_refused_before_anything_is_asked(
    shell: Shell, words: tuple[str, ...]
) -> None:
    status, out, err = shell.now("watch", *words)
    assert (status, out) == (2, "")
    assert "events -f" in err
