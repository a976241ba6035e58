"""The peers live in an environment of their own, or are left out with a note."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from benchmarks import messages, peer_venv, peers
from benchmarks.rows import Bench

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_versions_are_pinned() -> None:
    lines = peer_venv.REQUIREMENTS.read_text().split()
    assert sorted(line.partition("==")[0] for line in lines) == ["huey", "pykka"]
    assert all(line.partition("==")[2] for line in lines)


def test_peers_that_cannot_be_installed_are_skipped_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho there is no network >&2\nexit 1\n")
    broken.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(broken))
    bench = Bench(tmp_path, messages=10)
    samples = [*peers.measure(bench), *messages.measure(bench)]
    found = {sample.name: sample for sample in samples}
    for name in ("tell", "tell-trio", "tell-called", "ask", "ask-trio"):
        assert found.pop(name).value
    for name in ("w1-huey", "w1-huey-forgets", "tell-pykka", "ask-pykka"):
        sample = found.pop(name)
        assert sample.value is None
        assert sample.note.startswith("skipped: the peers were not installed: ")
        assert "there is no network" in sample.note
    assert not found


def test_an_interpreter_without_a_peer_is_named() -> None:
    problem = peer_venv.named(sys.executable).lacks("no_such_peer")
    assert problem is not None
    assert sys.executable in problem
    assert peer_venv.named(sys.executable).lacks("json") is None
