"""What the store of a home that nothing serves says of the agents of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.agent_views import agent_view
from forge_actors.domain.agents import AgentReport
from forge_actors.domain.verifying import Verify, report_of, verify_view

if TYPE_CHECKING:
    from collections.abc import Callable

Json = dict[str, Any]


def agent_of(
    spec: Json, receipt: Json, moment: Callable[[float], str | None]
) -> Json | None:
    """The agent of a job with this spec, and what it told in the end."""
    agent = spec.get("agent")
    if agent is None:
        return None
    told = receipt.get("agent")
    report = None if told is None else msgspec.convert(told, AgentReport)
    report = report_of(_verify(spec), report)
    view = agent_view(agent["name"], report, moment, agent.get("continues"))
    shown: Json = msgspec.to_builtins(view)
    return shown


def verify_of(spec: Json, attempt: int) -> Json | None:
    """The check that the work of a job has to pass."""
    verify = _verify(spec)
    return None if verify is None else verify_view(verify, attempt)


def _verify(spec: Json) -> Verify | None:
    asked = spec.get("verify")
    return None if asked is None else msgspec.convert(asked, Verify)
