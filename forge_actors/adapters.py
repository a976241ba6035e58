"""For adapters of your own: an agent program that Forge Actors does not know yet.

An adapter makes a command of a run and reads what the program prints into the events
below. It is a class without arguments that has what `AgentAdapter` says, found by the
entry point group `forge_actors.agents` under its name:

    [project.entry-points."forge_actors.agents"]
    mine = "my_package:Mine"

or given to `register` by a program that runs a runtime itself. From then on
`--agent mine`, and `agent="mine"` of a job, mean it.
"""

from __future__ import annotations

from forge_actors.domain.agents import (
    AgentAdapter,
    AgentEvent,
    AgentReader,
    AgentRun,
    Final,
    Invocation,
    LimitHit,
    LimitKind,
    Login,
    Progress,
    Question,
    SessionGone,
    SessionKnown,
    TelemetryReader,
    Usage,
    UsageAdded,
)
from forge_actors.edges.agents.finding import register

__all__ = [
    "AgentAdapter",
    "AgentEvent",
    "AgentReader",
    "AgentRun",
    "Final",
    "Invocation",
    "LimitHit",
    "LimitKind",
    "Login",
    "Progress",
    "Question",
    "SessionGone",
    "SessionKnown",
    "TelemetryReader",
    "Usage",
    "UsageAdded",
    "register",
]
