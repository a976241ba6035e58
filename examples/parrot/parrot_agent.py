"""The adapter of an agent program of one's own, which is called `parrot`.

It is found by its entry point, see pyproject.toml beside it. A program can also give it
to `forge_actors.adapters.register`.

    forge-actors submit --agent parrot --prompt "hello"
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.adapters import (
    AgentRun,
    Final,
    Invocation,
    Login,
    Progress,
    SessionKnown,
    Usage,
    UsageAdded,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from forge_actors.adapters import AgentAdapter, AgentEvent


class Parrot:
    """What there is to know of the program."""

    name = "parrot"
    #: Its jobs take no token of a provider besides that of an agent.
    provider = None
    program = "parrot"
    stop_signal = "SIGTERM"
    grace = 5.0
    #: Asked to stop it ends without an answer, so an answer is a good end.
    ends_after_stop = False
    variables: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()

    def invocation(self, run: AgentRun) -> Invocation:
        """The command of an attempt; what it is asked is its input."""
        session = () if run.resume is None else ("--resume", run.resume)
        return Invocation((run.program, *session, *run.arguments))

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> Reader:
        return Reader()

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        """Whether a session can be resumed: never, it remembers nothing."""
        return False

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        return Login(True, "it needs none")


class Reader:
    """Reads what one attempt prints."""

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        word, _, rest = line.decode(errors="replace").partition(" ")
        match word:
            case "session":
                return [SessionKnown(rest)]
            case "did":
                return [Progress(rest, acted=True)]
            case "used":
                read, _, written = rest.partition(" ")
                return [UsageAdded(Usage(int(read), int(written)))]
            case "answer":
                return [Final(rest, ok=True)]
        return None

    def end(self, stdout: str, stderr: str) -> Iterator[AgentEvent]:
        """It ended without an answer."""
        yield Final(stderr.strip() or "it said nothing", ok=False)


if TYPE_CHECKING:
    _is_an_adapter: AgentAdapter = Parrot()
