"""How the programs of agents read, and what `doctor` finds of them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.agents import AgentProgram

Json = dict[str, Any]


def program_lines(programs: Sequence[Json]) -> dict[str, str]:
    """A line for each, by its name."""
    return {program["name"]: _line(program) for program in programs}


def _line(program: Json) -> str:
    path = program.get("path")
    if path is None:
        return "not found; forge-actors doctor says where it was searched"
    version = program.get("version")
    parts = [str(path), *([f"version {version}"] if version else [])]
    return ", ".join([*parts, program["detail"]])


def found_here() -> list[tuple[Literal["ok", "missing"], str]]:
    """What this machine has of agents, by the environment of this command.

    One that is not there is missing: whoever wants it knows, and all else works.
    """
    from forge_actors.runtime.agent_programs import probe_all
    from forge_actors.runtime.agents import Agents
    from forge_actors.runtime.orders import allowed_environment

    programs = probe_all(Agents("", os.environ, allowed_environment()))
    return [_found(program) for program in programs]


def _found(program: AgentProgram) -> tuple[Literal["ok", "missing"], str]:
    words = [program.name]
    if program.path is not None:
        words.append(program.path)
    if program.version is not None:
        words.append(f"version {program.version}")
    text = f"{', '.join(words)}: {program.detail}"
    return ("ok" if program.usable else "missing", text)


def unseen(programs: Sequence[Json]) -> list[str]:
    """What the service that runs does not see, though it may be found from here."""
    return [
        f"the service does not see {program['name']}: {program['detail']}"
        for program in programs
        if program.get("path") is None
    ]
