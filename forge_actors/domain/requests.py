"""What callers may send, and the checks that need no knowledge of the present state."""

from __future__ import annotations

import base64
import difflib
import re
from typing import TYPE_CHECKING, TypeVar, get_args, get_type_hints

import msgspec
from msgspec import Struct

from forge_actors.domain.admissions import AdmissionWanted
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import State
from forge_actors.domain.selection import JobFilter

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MAX_ARGV = 4096
#: Linux takes 128 KiB of an argument (MAX_ARG_STRLEN), with the byte behind its end.
MAX_ARGUMENT_BYTES = 128 * 1024 - 1
MAX_LABELS = 32
MAX_SECRETS = 32
MAX_NAME_LENGTH = 200
MAX_BATCH = 100_000

#: The fields of a request that only a job with an agent can have.
OF_AGENTS = (
    "agent",
    "prompt",
    "budget_cost",
    "budget_tokens",
    "verify",
    "verify_timeout",
    "verify_rounds",
)

T = TypeVar("T")


class Parent(Struct, frozen=True, forbid_unknown_fields=True):
    """The attempt of a running job that submits others: it hands its work on."""

    job: str
    attempt: int
    fence: int


class JobRequest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One job to submit: a line of a batch, the options of `submit`.

    `argv` elements that are no UTF-8 are `{"b64": "..."}`. `after` holds ids, selectors
    or, within one batch, names. Durations are seconds or text such as `30m`.
    """

    repo: str
    argv: list[str | dict[str, str]]
    kind: str = "repository-command"
    priority: str = "P2"
    claims: list[str] = []
    after: list[str] = []
    name: str | None = None
    labels: list[str] = []
    provider: str | None = None
    request_id: str | None = None
    unique: str | None = None
    read_only: bool = False
    replay: str | None = None
    max_attempts: int | None = None
    timeout: str | float | None = None
    queue_timeout: str | float | None = None
    admission_timeout: str | float | None = None
    idle_timeout: str | float | None = None
    cwd: str | None = None
    env: dict[str, str] = {}
    secrets: list[str] = []
    stdin: str | None = None
    #: By default that of its agent, or SIGTERM.
    stop_signal: str | None = None
    grace: str | float | None = None
    keep_leftovers: bool = False
    pty: bool = False
    nice: int = 0
    #: Bytes, or text such as `2G`.
    memory: str | int | None = None
    pids: int | None = None
    after_job: str | None = None
    #: The agent that runs, and what it is asked; `argv` are more arguments for it.
    agent: str | None = None
    prompt: str | None = None
    #: What that may use in all attempts, in US dollars and in tokens.
    budget_cost: float | None = None
    budget_tokens: int | None = None
    #: A shell command that its work has to pass, the time that may take, and how often
    #: it may mend what that finds.
    verify: str | None = None
    verify_timeout: str | float | None = None
    verify_rounds: int | None = None
    artifacts: list[str] = []
    #: Artifacts of earlier jobs that it finds when it starts, as `JOB` or `JOB:GLOB`.
    inputs: list[str] = []
    #: Names of the values that it hands on, in the file that FORGE_OUTPUT names.
    outputs: list[str] = []
    #: A worktree of its own, or never one; None leaves it to the settings.
    isolate: bool | None = None
    #: The name of the worktree's branch, a pattern, and the commit that it begins at.
    branch: str | None = None
    base: str | None = None
    #: The job in whose worktree it works, in place of one of its own.
    in_worktree: str | None = None
    #: What it does to the outside: it waits for a person if it may not.
    effects: list[str] = []
    #: What it may do though no person asked for it; only a person can say so.
    authorised: list[str] = []
    origin: str = "cli"
    parent: Parent | None = None
    #: The workflow instance or EPIC run that it is of; only these say so themselves.
    work: str | None = None

    @property
    def wants_agent(self) -> bool:
        """It names one, or something that only a job of one has."""
        # Each of `OF_AGENTS`: asked of every request, so without a loop.
        return not (
            self.agent is None
            and self.prompt is None
            and self.budget_cost is None
            and self.budget_tokens is None
            and self.verify is None
            and self.verify_timeout is None
            and self.verify_rounds is None
        )


class JobEdit(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What to change of a job that waits; what is None stays.

    The fields are those of `JobRequest`. A time budget of `none` is taken away.
    """

    priority: str | None = None
    claims: list[str] | None = None
    labels: list[str] | None = None
    timeout: str | float | None = None
    queue_timeout: str | float | None = None
    admission_timeout: str | float | None = None
    idle_timeout: str | float | None = None


class Accepted(Struct):
    """The answer to one request: the job's id, and whether it was there before."""

    id: str
    existing: bool = False


class Retried(Struct):
    """A job made anew: its id, whose retry it is, and whether it was there before."""

    id: str
    retry_of: str
    existing: bool = False


class Continued(Struct):
    """A job that goes on with another one, in its session."""

    id: str
    continues: str


class JobQuery(JobFilter, kw_only=True):
    """Which jobs to list, newest first."""

    limit: int = 100
    #: Only jobs older than this id: the last one of the page before.
    before: str | None = None


class Explanation(Struct):
    """Why a job is where it is: one sentence, and the data behind it."""

    job: str
    state: State
    sentence: str
    waiting: dict[str, object] | None


class LogChunk(Struct):
    """A piece of one output stream. Offsets are those of the original stream.

    `missing` bytes just before `offset` were not kept. With `ended` nothing follows.
    """

    offset: int
    data: bytes
    missing: int
    ended: bool

    @property
    def next_offset(self) -> int:
        return self.offset + len(self.data)


_UNKNOWN = re.compile(r"Object contains unknown field `(?P<name>[^`]*)`(?P<rest>.*)")
_NO_WORD = re.compile(r"Invalid enum value '(?P<word>.*)'$", re.DOTALL)
_PLACE = re.compile(r"^(?P<problem>.*?)(?: - at `(?P<path>[^`]*)`)?$", re.DOTALL)


def convert(value: object, wanted: type[T], *, where: str = "") -> T:
    """`value`, decoded JSON or TOML, as a `wanted` Struct.

    Raises:
        InvalidInput: naming the field, and for an unknown key the nearest known one.
    """
    try:
        return msgspec.convert(value, wanted)
    except msgspec.ValidationError as error:
        raise explain_mismatch(error, wanted, where=where) from None


def explain_mismatch(
    error: msgspec.ValidationError, wanted: type, *, where: str = ""
) -> InvalidInput:
    """The one clear error for what msgspec found."""
    match = _PLACE.match(str(error))
    problem, path = (match["problem"], match["path"]) if match else (str(error), None)
    place = (path or "").removeprefix("$").removeprefix(".").removeprefix("[...]")
    unknown = _UNKNOWN.match(problem)
    if unknown:
        name = unknown["name"]
        known = _fields_at(wanted, place)
        near = nearest(name, known)
        field = ".".join(part for part in (where, place, name) if part)
        if near is None:
            return InvalidInput(field, "is not a known field", allowed=known)
        return InvalidInput(field, f"is not a known field; did you mean {near!r}?")
    field = ".".join(part for part in (where, place) if part)
    word = _NO_WORD.match(problem)
    if word:
        return unknown_word(field, word["word"], _words(_type_at(wanted, place)))
    return InvalidInput(field or "input", problem[:1].lower() + problem[1:])


def _fields_at(wanted: type, place: str) -> tuple[str, ...]:
    """The fields a Struct may have at a place such as `limits` or `job[...]`."""
    return getattr(_struct_in(_type_at(wanted, place)), "__struct_encode_fields__", ())


def _type_at(wanted: object, place: str) -> object:
    """The type that a field at such a place was declared with."""
    for part in re.sub(r"\[[^]]*\]", "", place).split(".") if place else ():
        struct = _struct_in(wanted)
        hints = get_type_hints(struct) if isinstance(struct, type) else {}
        wanted = hints.get(part, object)
    return wanted


def _struct_in(wanted: object) -> object:
    """The Struct of a field that holds one, a list of them, or perhaps none."""
    inner = (one for one in get_args(wanted) if hasattr(one, "__struct_fields__"))
    return next(inner, wanted)


def _words(wanted: object) -> tuple[str, ...]:
    """The words of a field that takes one of some, or a list of them."""
    words = get_args(wanted)
    if words and all(isinstance(word, str) for word in words):
        return words
    return next(filter(None, map(_words, words)), ())


def unknown_word(field: str, word: str, allowed: Sequence[str]) -> InvalidInput:
    """The error for a word that is none of those that are allowed."""
    near = nearest(word, allowed)
    hint = f"; did you mean {near!r}?" if near else ""
    return InvalidInput(field, f"{word!r} is unknown{hint}", allowed=tuple(allowed))


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name that `name` was most likely meant to be."""
    matches = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return matches[0] if matches else None


class CandidateRequest(JobRequest):
    """A job that is admitted only when it begins, and lasts until it ends by itself.

    No request from outside can be one: only what admits it makes such jobs.
    """

    admission: AdmissionWanted | None = None


def refuse_work(requests: Sequence[JobRequest]) -> None:
    """Raise InvalidInput if somebody outside says of a job which work it is of."""
    for index, request in enumerate(requests):
        if request.work is not None:
            prefix = "" if len(requests) == 1 else f"jobs[{index}]."
            raise InvalidInput(
                f"{prefix}work",
                "is said by workflows and EPIC runs alone; leave it out",
            )


def decode_argv(argv: list[str | dict[str, str]], *, field: str) -> tuple[str, ...]:
    """Arguments as Python programs hold them: undecodable bytes as surrogates.

    Raises:
        InvalidInput: empty, too long, a NUL, or a form that is not text or `b64`.
    """
    if len(argv) > MAX_ARGV:
        raise InvalidInput(field, f"has more than {MAX_ARGV} arguments")
    decoded = tuple(_decode_argument(part, field=field) for part in argv)
    if not decoded or decoded[0] == "":
        raise InvalidInput(field, "names no program to run")
    return decoded


def _decode_argument(part: str | dict[str, str], *, field: str) -> str:
    if isinstance(part, str):
        try:
            raw = part.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise InvalidInput(field, "an argument is no valid Unicode") from None
    else:
        try:
            raw = base64.b64decode(part["b64"], validate=True)
        except (KeyError, ValueError):
            raise InvalidInput(
                field, 'an argument is text, or {"b64": "..."} for bytes'
            ) from None
    if b"\0" in raw:
        raise InvalidInput(field, "an argument cannot contain a NUL byte")
    if len(raw) > MAX_ARGUMENT_BYTES:
        raise InvalidInput(field, f"an argument has at most {MAX_ARGUMENT_BYTES} bytes")
    return raw.decode("utf-8", "surrogateescape")


def encode_argv(argv: Iterable[str]) -> list[str | dict[str, str]]:
    """The form of `argv` that JSON can carry; the inverse of `decode_argv`."""
    return [_encode_argument(part) for part in argv]


def _encode_argument(part: str) -> str | dict[str, str]:
    try:
        part.encode()
    except UnicodeEncodeError:
        raw = part.encode("utf-8", "surrogateescape")
        return {"b64": base64.b64encode(raw).decode("ascii")}
    return part
