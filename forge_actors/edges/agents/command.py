"""Any command as an agent: it reads the prompt and prints the answer.

It tells nothing while it works. Its answer is the end of what it prints, and its exit
status says whether it is good.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.agents import Final, Invocation, Login, Progress

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.domain.agents import AgentEvent, AgentRun, Usage


class Command:
    """The adapter `command`."""

    name = "command"
    provider = None
    program = None
    stop_signal = "SIGTERM"
    grace = 10.0
    ends_after_stop = True
    variables: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()

    def invocation(self, run: AgentRun) -> Invocation:
        return Invocation((run.program, *run.arguments))

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> CommandReader:
        return CommandReader()

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        return False

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        return Login(None, "nobody knows")


class CommandReader:
    """Keeps the end of what it prints."""

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        return None

    def end(self, stdout: str, stderr: str) -> Iterator[AgentEvent]:
        # What it did is its own matter: nobody can say that it was nothing.
        yield Progress("ran", acted=True)
        yield Final(stdout.strip(), True)
