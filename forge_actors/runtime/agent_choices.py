"""The agents that a request names: the first of them that can does the job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import AgentChoice
from forge_actors.edges.agents import finding

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentAdapter
    from forge_actors.domain.requests import JobRequest


def choices_of(
    request: JobRequest, prefix: str
) -> tuple[AgentAdapter, tuple[AgentChoice, ...]]:
    """The first of the agents that a request names, and all where there are several.

    Raises:
        InvalidInput: one cannot take the place of another.
    """
    assert request.agent is not None, "it names one"
    field = f"{prefix}agent"
    names = [name.strip() for name in request.agent.split(",")]
    found = [finding.adapter(name, field=field) for name in names]
    if len(found) == 1:
        return found[0], ()
    if len(set(names)) < len(names):
        raise InvalidInput(field, "names an agent twice")
    for given, what in ((request.argv, "argv"), (request.provider, "provider")):
        if given:
            raise InvalidInput(f"{prefix}{what}", "is for a job with one agent")
    choices = []
    for of in found:
        if of.program is None or of.provider is None:
            raise InvalidInput(field, f"{of.name} cannot take the place of another")
        grace = of.grace
        if request.grace is not None:
            grace = parse_duration(request.grace, field=f"{prefix}grace")
        signal = request.stop_signal or of.stop_signal
        choices.append(AgentChoice(of.name, of.provider, of.program, signal, grace))
    return found[0], tuple(choices)
