"""Agents: what an agent program is to us, and what it tells, in one form for all.

A program such as Claude Code or Codex prints events while it works, each in a form of
its own. Its adapter reads them into the events below, and what counts in the end is the
report that they come to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol, TypeVar, runtime_checkable

from msgspec import Struct, structs

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Number = TypeVar("Number", int, float)

#: What stops a program. `usage`: what its account may use is spent until a stated
#: moment. `rate`: too many requests for now. `overload`: the service has no room.
#: `auth`: it is not logged in. `budget`: the money of its account is spent.
LimitKind = Literal["usage", "rate", "overload", "auth", "budget"]

#: Characters kept of a final text, and of each other text of a report.
MAX_FINAL_TEXT = 16 * 1024
MAX_TEXT = 2000


class Usage(Struct, frozen=True, omit_defaults=True):
    """What a program used. None is unknown, which is not the same as nothing.

    `input_tokens` are all that were read, `cached_tokens` those of them that came from
    a cache; `cost` is in US dollars.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None
    cost: float | None = None

    def __add__(self, other: Usage) -> Usage:
        """Both together; what only one of them knows is what that one knows."""
        return Usage(
            _sum(self.input_tokens, other.input_tokens),
            _sum(self.output_tokens, other.output_tokens),
            _sum(self.cached_tokens, other.cached_tokens),
            _sum(self.cost, other.cost),
        )

    def since(self, earlier: Usage) -> Usage:
        """What was used after `earlier`, both counted from one beginning."""
        return Usage(
            _rise(self.input_tokens, earlier.input_tokens),
            _rise(self.output_tokens, earlier.output_tokens),
            _rise(self.cached_tokens, earlier.cached_tokens),
            _rise(self.cost, earlier.cost),
        )


class Budget(Struct, frozen=True, omit_defaults=True):
    """US dollars, and tokens that are read or written; None is no limit."""

    cost: float | None = None
    tokens: int | None = None

    def __bool__(self) -> bool:
        return self.cost is not None or self.tokens is not None

    @property
    def amount(self) -> str:
        """How much it is, in a word."""
        cost = None if self.cost is None else f"${self.cost:g}"
        tokens = None if self.tokens is None else f"{self.tokens}"
        return "+".join(part for part in (cost, tokens) if part is not None)

    def spent_by(self, cost: float, tokens: int) -> str | None:
        """What of it is spent, in words; None if nothing is."""
        if self.cost is not None and cost >= self.cost:
            return f"${cost:,.2f} of ${self.cost:,.2f} are used"
        if self.tokens is not None and tokens >= self.tokens:
            return f"{tokens:,} of {self.tokens:,} tokens are used"
        return None


class SessionKnown(Struct, frozen=True):
    """The session has a name by which it can be resumed."""

    session: str
    #: Of the program.
    version: str | None = None


class SessionGone(Struct, frozen=True):
    """The session that it was to resume is not known to it; it did nothing."""


class Progress(Struct, frozen=True):
    """It does something. With `acted` it is more than words: a command, a file."""

    text: str
    acted: bool = False


class UsageAdded(Struct, frozen=True):
    """What was used since this was told last."""

    usage: Usage


class LimitHit(Struct, frozen=True, omit_defaults=True):
    """It was refused. `retry_at` is in seconds since 1970, where that was told."""

    kind: LimitKind
    text: str = ""
    retry_at: float | None = None
    #: It is a limit that the job itself was given, which concerns no other.
    own: bool = False


class Question(Struct, frozen=True):
    """It asks, and nobody is there to answer."""

    text: str


class Final(Struct, frozen=True):
    """The last event: the answer, or with `ok` false what went wrong."""

    text: str
    ok: bool


AgentEvent = (
    SessionKnown | SessionGone | Progress | UsageAdded | LimitHit | Question | Final
)


class AgentReport(Struct, frozen=True, omit_defaults=True):
    """What one attempt of an agent came to, by what it told."""

    agent: str
    session: str | None = None
    #: It resumed that session, or was to.
    resumed: bool = False
    #: The session that it was to go on with is gone, so it began anew with a summary.
    anew: bool = False
    #: It says that the session does not exist.
    session_gone: bool = False
    version: str | None = None
    #: What its final event says; None if it told none.
    ok: bool | None = None
    text: str = ""
    #: It ran a command, changed a file or used another tool.
    acted: bool = False
    usage: Usage | None = None
    #: What refused it at last. Nothing, if it succeeded nevertheless.
    limit: LimitHit | None = None
    question: str | None = None
    #: Which budget is spent with what it used, if one is; and that it was asked to stop
    #: for that.
    spent: str | None = None
    stopped_for_budget: bool = False
    #: Its final event was there before it was asked to stop.
    in_time: bool = True
    #: What it printed that is no event, the end of it.
    noise: str = ""
    #: Bytes of output that were not read, since they were not kept or one line was too
    #: long.
    unread: int = 0

    @property
    def ended_before_stop(self) -> bool:
        """It told a final event, and not because it was asked to stop."""
        return self.ok is not None and self.in_time


class AgentRun(Struct, frozen=True):
    """One attempt of an agent job, as its adapter makes a command of it."""

    #: The path of the program.
    program: str
    #: More arguments, of the user's.
    arguments: tuple[str, ...] = ()
    #: A name for a new session, for a program that lets us choose one.
    session: str | None = None
    #: A session to resume instead.
    resume: str | None = None
    #: It begins anew in place of a session that is gone.
    anew: bool = False
    #: Where it may write what it tells besides its output.
    telemetry: str | None = None


class Invocation(Struct, frozen=True):
    """The command of an attempt, and variables of ours. The prompt is its input."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}


class Login(Struct, frozen=True):
    """Whether a program is logged in. None: it does not tell; `detail` says more."""

    ok: bool | None
    detail: str


class AgentProgram(Struct, frozen=True):
    """An agent program as it was found on this machine."""

    name: str
    provider: str | None
    #: None: it was not found.
    path: str | None = None
    version: str | None = None
    #: None: it does not tell.
    logged_in: bool | None = None
    #: How it is logged in, or why it cannot be used.
    detail: str = ""

    @property
    def usable(self) -> bool:
        """Nothing is known that would keep a job from running."""
        return self.path is not None and self.logged_in is not False


class AgentReader(Protocol):
    """Reads the output of one attempt."""

    def line(self, line: bytes) -> Iterable[AgentEvent] | None:
        """One whole line of stdout, without its end; None if it is no event at all."""

    def end(self, stdout: str, stderr: str) -> Iterable[AgentEvent]:
        """Nothing follows, and there was no final event: what the end of its output
        tells, as far as that was no event."""


@runtime_checkable
class TelemetryReader(Protocol):
    """An `AgentReader` that also reads the file that its run named for telemetry."""

    def telemetry(self, line: bytes) -> Iterable[AgentEvent]:
        """One whole line of it, without its end."""


class AgentAdapter(Protocol):
    """One agent program. An adapter of others is found by the entry point group
    `forge_actors.agents`, under its name."""

    @property
    def name(self) -> str:
        """As `--agent` has it."""

    @property
    def provider(self) -> str | None:
        """Whose token its jobs take."""

    @property
    def program(self) -> str | None:
        """What it is called on the PATH. None: the arguments name it."""

    @property
    def stop_signal(self) -> str:
        """What asks it to stop."""

    @property
    def grace(self) -> float:
        """Seconds it needs for that."""

    @property
    def ends_after_stop(self) -> bool:
        """Whether it may tell a good end only because it was asked to stop."""

    @property
    def variables(self) -> frozenset[str]:
        """Variables of the service's environment that it may see besides those of every
        job."""

    @property
    def credentials(self) -> frozenset[str]:
        """More of them, whose values are masked in its output."""

    def invocation(self, run: AgentRun) -> Invocation:
        """The command of an attempt: with no secret and no prompt in it."""

    def reader(
        self, run: AgentRun, *, now: float, zone: str | None, before: Usage | None
    ) -> AgentReader:
        """Reads what that attempt prints.

        `now` and `zone` are what a time of day in its texts is measured by, `before` is
        what a resumed session had used.
        """

    def keeps(self, session: str, env: Mapping[str, str]) -> bool:
        """Whether the program still has a session, so that it can be resumed."""

    def login(self, program: str, env: Mapping[str, str]) -> Login:
        """Ask the program whether it is logged in. It reaches out to nobody."""


class Told:
    """What one attempt has told so far; the events add up to its report."""

    def __init__(self, agent: str, *, resumed: bool = False) -> None:
        self._report = AgentReport(agent, resumed=resumed)
        self._usage: Usage | None = None
        self._limit: LimitHit | None = None
        self._acted = False
        self._gone = False
        #: What it told last of its work.
        self.said = ""
        #: Where in the output its final event ended.
        self.final_at: int | None = None

    @property
    def session(self) -> str | None:
        return self._report.session

    @property
    def usage(self) -> Usage | None:
        return self._usage

    @property
    def succeeded(self) -> bool:
        """It has told a good end."""
        return self._report.ok is True

    def take(self, event: AgentEvent, at: int) -> None:
        """One more event, which ended at this offset of the output."""
        match event:
            case Progress(text, acted):
                self._acted |= acted
                if acted:
                    # It went on without an answer, so it needs none.
                    self._change(question=None)
                self.said = text or self.said
            case SessionGone():
                self._gone = True
            case UsageAdded(usage):
                self._usage = usage if self._usage is None else self._usage + usage
            case LimitHit():
                self._limit = event
            case SessionKnown(session, version):
                self._change(session=session[:MAX_TEXT], version=version)
            case Question(text):
                self._change(question=text[:MAX_TEXT])
            case Final(text, ok):
                self._change(text=shortened(text), ok=ok)
                self.final_at = at

    def report(self, *, noise: str, unread: int, stopped_at: int | None) -> AgentReport:
        """What it comes to. `stopped_at`: how much it had printed when it was asked to
        stop, if it was."""
        late = (
            stopped_at is not None
            and self.final_at is not None
            and self.final_at > stopped_at
        )
        return structs.replace(
            self._report,
            acted=self._acted,
            session_gone=self._gone,
            usage=self._usage,
            limit=None if self.succeeded else self._limit,
            in_time=not late,
            noise=noise[-MAX_TEXT:],
            unread=unread,
        )

    def _change(self, **fields: object) -> None:
        self._report = structs.replace(self._report, **fields)


def shortened(text: str) -> str:
    """A final text as it is kept; the log has all of it."""
    if len(text) <= MAX_FINAL_TEXT:
        return text
    return f"{text[:MAX_FINAL_TEXT]}…"


def _sum(one: Number | None, other: Number | None) -> Number | None:
    if one is None or other is None:
        return other if one is None else one
    return one + other


def _rise(total: Number | None, earlier: Number | None) -> Number | None:
    if total is None or earlier is None:
        return None
    return total - earlier
