"""Putting a program that plays an agent into a folder."""

from __future__ import annotations

import json
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import forge_actors
from forge_actors.testing.agents.acting import Scene

NAMES = ("claude", "codex", "copilot")

_ROOT = Path(forge_actors.__file__).parent.parent
_PROGRAM = """\
#!/bin/sh
exec {python} -IS -c {code} "$0" "$@"
"""
_CODE = (
    "import sys; sys.path.insert(0, {root!r});"
    " from forge_actors.testing.agents.{name} import main; main()"
)


class FakeAgent:
    """One that is installed: an executable, and what it plays."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def play(self, scene: str = "success", **options: Any) -> None:
        """What it does from its next start on; see `acting.Scene` for the options."""
        played = Scene(scene, **options)
        fresh = self.path.with_name(f"{self.path.name}.scene.new")
        fresh.write_text(json.dumps(asdict(played)))
        fresh.replace(self.path.with_name(f"{self.path.name}.scene"))


def install(folder: Path, name: str) -> FakeAgent:
    """Make the program `name` in a folder, which is made too."""
    if name not in NAMES:
        raise ValueError(f"nothing plays {name!r}; there are {', '.join(NAMES)}")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    code = _CODE.format(root=str(_ROOT), name=name)
    path.write_text(
        _PROGRAM.format(python=shlex.quote(sys.executable), code=shlex.quote(code))
    )
    path.chmod(0o755)
    return FakeAgent(path)
