"""Simulated agents: jobs whose attempts tell what they came to, and checks of that.

What an attempt does is in the plan, as for all jobs; a check is named by its job.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.agents import AgentReport
from forge_actors.domain.jobs import AgentSpec
from forge_actors.domain.verifying import CheckReport

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.requests import JobRequest
    from forge_actors.testing.simulation.machine import Process

NAME = "simulated"
#: The digests of what an agent is asked, and of what a person answers.
PROMPT, ANSWER = "0" * 64, "1" * 64
#: Begins the command of a check, which goes on with the name of its job.
CHECK = "check "


class SimulatedAgents:
    """What admission and orders need of `runtime.agents.Agents`."""

    def accept(self, request: JobRequest, prefix: str) -> tuple[JobRequest, AgentSpec]:
        kind = "agent-run" if request.kind == "repository-command" else request.kind
        plain = structs.replace(request, kind=kind, agent=None, prompt=None)
        return plain, AgentSpec(NAME, PROMPT)

    def order(self, order: LaunchOrder, spec: JobSpec) -> LaunchOrder:
        return order


def is_check(argv: list[str]) -> bool:
    """Whether a process with these arguments is that of a check."""
    return argv[-1].startswith(CHECK)


def told(process: Process, receipt: Receipt, *, agent: bool) -> Receipt:
    """The receipt with what the program told, as far as it came to that."""
    if process.checks and receipt.ending in ("exit", "wall"):
        likeness = "alike" if process.run.alike else None
        return structs.replace(receipt, check=CheckReport(likeness=likeness))
    if process.checks or receipt.ending != "exit":
        return receipt
    if process.limit is not None:
        report = AgentReport(NAME, ok=False, limit=process.limit)
        return structs.replace(receipt, agent=report)
    if not agent:
        return receipt
    ok = None if receipt.exit_code is None else receipt.exit_code == 0
    question = "Which one?" if process.run.asks and ok else None
    report = AgentReport(NAME, ok=ok, text="done", question=question)
    return structs.replace(receipt, agent=report)
