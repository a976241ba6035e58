"""Resources: jobs, what they came to and what they printed, each under a URI."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import parse_qsl, unquote, urlsplit

from msgspec import Struct, to_builtins

from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.harmless import clean, clean_lines
from forge_actors.domain.requests import JobQuery
from forge_actors.edges.gateway.mcp import calls
from forge_actors.edges.gateway.mcp.answers import answer_of, text_of
from forge_actors.edges.gateway.mcp.arguments import ListJobs, Nothing
from forge_actors.edges.gateway.mcp.caller import Caller
from forge_actors.edges.gateway.mcp.output import read_part
from forge_actors.edges.gateway.mcp.rows import SCHEME, job_uri

if TYPE_CHECKING:
    from forge_actors.domain.control import Control

JSON = "application/json"
TEXT = "text/plain"
#: Characters of one resource that is JSON, and bytes of one that is output or a diff.
MAX_RESOURCE = 128 * 1024
MAX_TEXT = 64 * 1024
#: Jobs that the list of resources names, the newest ones.
LISTED = 20


class Kind(Struct, frozen=True):
    """A kind of resource, and how it is read: of a job, with the query of its URI."""

    #: What follows the id of a job in its URI.
    path: tuple[str, ...]
    name: str
    description: str
    mime_type: str
    read: Callable[[Control, str, dict[str, str]], Awaitable[str]]

    @property
    def template(self) -> str:
        query = "{?offset}" if self.mime_type == TEXT else ""
        return job_uri("{job}", *self.path) + query


class Fixed(Struct, frozen=True):
    """A resource that is always there."""

    uri: str
    name: str
    description: str
    read: Callable[[Control], Awaitable[str]]


class Link(Struct, frozen=True):
    """A resource in a list."""

    uri: str
    name: str
    description: str
    mime_type: str


async def _whole(control: Control, job: str, query: dict[str, str]) -> str:
    return _json(await calls.whole_job(control, job))


async def _result(control: Control, job: str, query: dict[str, str]) -> str:
    view = await calls.whole_job(control, job)
    return _json(
        {
            "id": view.id,
            "state": view.state,
            "exit_code": view.exit_code,
            "error": view.error,
            "agent": view.agent,
            "result": view.result,
            "artifacts": view.artifacts,
            "outputs": view.outputs,
            "outputs_problem": view.outputs_problem,
        }
    )


async def _stdout(control: Control, job: str, query: dict[str, str]) -> str:
    return await _stream(control, job, "stdout", query)


async def _stderr(control: Control, job: str, query: dict[str, str]) -> str:
    return await _stream(control, job, "stderr", query)


async def _stream(
    control: Control, job: str, stream: str, query: dict[str, str]
) -> str:
    offset = _offset(query, -MAX_TEXT)
    part = await read_part(control, job, stream, offset=offset, limit=MAX_TEXT)
    uri, notes = job_uri(part.job, "logs", stream), []
    if part.offset:
        notes.append(f"bytes before {part.offset}: {uri}?offset=0")
    if not part.ended:
        notes.append(f"what follows: {uri}?offset={part.next_offset}")
    if not notes:
        return part.text
    return f"[forge-actors: {'; '.join(notes)}]\n{part.text}"


async def _diff(control: Control, job: str, query: dict[str, str]) -> str:
    view = await control.job(job)
    raw = await control.diff(view.id)
    start = max(0, _offset(query, 0))
    part = raw[start : start + MAX_TEXT]
    text = clean_lines(part.decode("utf-8", "replace"))
    end = start + len(part)
    if end >= len(raw):
        return text
    uri = job_uri(view.id, "diff")
    return f"[forge-actors: what follows: {uri}?offset={end}]\n{text}"


def _offset(query: dict[str, str], default: int) -> int:
    text = query.get("offset")
    if text is None:
        return default
    try:
        return int(text)
    except ValueError:
        raise InvalidInput("offset", f"{text!r} is no whole number") from None


async def _status(control: Control) -> str:
    return _json(await control.status())


async def _repositories(control: Control) -> str:
    return _json(await calls.repositories(_call(control), Nothing()))


async def _jobs(control: Control) -> str:
    return _json(await calls.jobs(_call(control), ListJobs()))


def _call(control: Control) -> calls.Call:
    return calls.Call(control, Caller())


def _json(value: object) -> str:
    return text_of(answer_of(to_builtins(value), MAX_RESOURCE))


KINDS = (
    Kind((), "job", "Everything about a job.", JSON, _whole),
    Kind(
        ("result",),
        "result of a job",
        "How a job ended, what its agent said, and what it changed.",
        JSON,
        _result,
    ),
    Kind(
        ("logs", "stdout"),
        "output of a job",
        "What a job printed: the last 64 KiB, or as much from `offset` on.",
        TEXT,
        _stdout,
    ),
    Kind(
        ("logs", "stderr"),
        "errors of a job",
        "What a job printed as errors: the last 64 KiB, or as much from `offset` on.",
        TEXT,
        _stderr,
    ),
    Kind(
        ("diff",),
        "diff of a job",
        "What a job changed in its worktree, as a patch, 64 KiB from `offset` on.",
        TEXT,
        _diff,
    ),
)
FIXED = (
    Fixed(f"{SCHEME}://jobs", "jobs", "The newest jobs.", _jobs),
    Fixed(
        f"{SCHEME}://repositories", "repositories", "All repositories.", _repositories
    ),
    Fixed(
        f"{SCHEME}://status",
        "status",
        "The service: its limits, what is in use, and what is wrong.",
        _status,
    ),
)
Found: TypeAlias = tuple[str, str]


async def links(control: Control) -> list[Link]:
    """What is there now: the fixed ones, and the newest jobs."""
    found = [Link(each.uri, each.name, each.description, JSON) for each in FIXED]
    for job in await control.jobs(JobQuery(limit=LISTED)):
        name = clean(job.name or job.kind)[:60]
        told = f"{job.kind} in {job.repo}, {job.state}"
        found.append(Link(job_uri(job.id), f"{name} {job.id[-6:]}", told, JSON))
    return found


async def read(control: Control, uri: str) -> Found:
    """The type and the text of a resource.

    Raises:
        NotFound: there is none of this name. InvalidInput: its query is not valid.
    """
    for each in FIXED:
        if uri == each.uri:
            return JSON, await each.read(control)
    try:
        parts = urlsplit(uri)
        query = dict(parse_qsl(parts.query, max_num_fields=8))
    except ValueError:
        raise NotFound(f"{uri[:200]!r} is no URI") from None
    job, *rest = [unquote(part) for part in parts.path.split("/") if part] or [""]
    if parts.scheme == SCHEME and parts.netloc == "jobs" and job:
        for kind in KINDS:
            if kind.path == tuple(rest):
                return kind.mime_type, await kind.read(control, job, query)
    known = [each.uri for each in FIXED] + [kind.template for kind in KINDS]
    raise NotFound(f"there is no resource {uri[:200]!r}; there are {', '.join(known)}")
