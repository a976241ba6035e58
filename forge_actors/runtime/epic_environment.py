"""What a worker of an EPIC sees of the environment of whoever runs that.

What every job may, what git goes by, and what the agents of its phases need, their keys
too. No token for GitHub is among it, unless an agent goes by that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.epic.phases import WORK
from forge_actors.domain.errors import Refused
from forge_actors.edges.agents import finding
from forge_actors.edges.git.checkout import KEPT
from forge_actors.runtime.github_settings import API_VARIABLE
from forge_actors.runtime.orders import allowed_environment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forge_actors.domain.agents import AgentAdapter
    from forge_actors.runtime.epic_settings import EpicSettings


def worker_environment(
    settings: EpicSettings, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """
    Raises:
        InvalidInput, Refused: an agent that a phase names cannot be loaded.
    """
    known = worker_variables(settings, environ) | worker_secrets(settings, environ)
    return {**allowed_environment(environ), **known}


def worker_variables(
    settings: EpicSettings, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """What a worker sees besides what every job does, but for the keys of its agents.

    Raises:
        InvalidInput, Refused: as `worker_environment`.
    """
    names = {API_VARIABLE, *KEPT}
    for agent, of in _agents(settings):
        names |= {*of.variables, finding.override_of(agent)}
    return {name: environ[name] for name in names if name in environ}


def worker_secrets(
    settings: EpicSettings, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """The keys of its agents.

    Raises:
        InvalidInput, Refused: as `worker_environment`.
    """
    names = {name for _, of in _agents(settings) for name in of.credentials}
    return {name: environ[name] for name in names if name in environ}


def _agents(settings: EpicSettings) -> Iterator[tuple[str, AgentAdapter]]:
    for phase in WORK:
        for agent in settings.phases.of(phase).agents:
            yield agent, finding.adapter(agent, field=f"epic.phases.{phase}.agent")


def check_programs(
    settings: EpicSettings, environ: Mapping[str, str] = os.environ
) -> None:
    """Make sure that each phase has an agent whose program is there: a job would wait
    for one, and nobody would see it.

    Raises:
        InvalidInput, Refused: one has none.
    """
    for phase in WORK:
        problems = []
        for agent in settings.phases.of(phase).agents:
            of = finding.adapter(agent, field=f"epic.phases.{phase}.agent")
            try:
                if of.program is not None:
                    finding.find(of, environ)
                break
            except Refused as error:
                problems.append(str(error))
        else:
            if problems:
                raise Refused(f"{phase}: {problems[0]}")
