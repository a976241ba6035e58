"""What a worker of an EPIC sees of the environment of whoever runs that.

What every job may, what git goes by, and what the agents of its phases need, their keys
too. No token for GitHub is among it, unless an agent goes by that.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.epic.phases import WORK
from forge_actors.edges.agents import finding
from forge_actors.edges.git.checkout import KEPT
from forge_actors.runtime.github_settings import API_VARIABLE
from forge_actors.runtime.orders import allowed_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.runtime.epic_settings import EpicSettings


def worker_environment(
    settings: EpicSettings, environ: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """
    Raises:
        InvalidInput, Refused: an agent that a phase names cannot be loaded.
    """
    names = {API_VARIABLE, *KEPT}
    for phase in WORK:
        for agent in settings.phases.of(phase).agents:
            of = finding.adapter(agent, field=f"epic.phases.{phase}.agent")
            names |= {*of.variables, *of.credentials, finding.override_of(agent)}
    known = {name: environ[name] for name in names if name in environ}
    return {**allowed_environment(environ), **known}
