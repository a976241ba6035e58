"""The parameters of queries, as those who write clients read of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.jobs import KINDS, STATES
from forge_actors.domain.results import DIFF_FORMS
from forge_actors.domain.spending import GROUPS

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The words of a parameter that is on or off.
ON_OFF = ("1", "0", "true", "false", "yes", "no")


class Parameter(Struct, frozen=True):
    """A parameter of a query: what it is for, and the JSON schema of its value."""

    name: str
    says: str
    schema: dict[str, object]


def text(name: str, says: str) -> Parameter:
    return Parameter(name, says, {"type": "string"})


def texts(name: str, says: str) -> Parameter:
    """One that may be given several times."""
    return Parameter(name, says, {"type": "array", "items": {"type": "string"}})


def word(name: str, says: str, words: Sequence[str]) -> Parameter:
    return Parameter(name, says, {"type": "string", "enum": list(words)})


def words(name: str, says: str, allowed: Sequence[str]) -> Parameter:
    """One that may be given several times, each time one of those allowed."""
    items = {"type": "string", "enum": list(allowed)}
    return Parameter(name, says, {"type": "array", "items": items})


def flag(name: str, says: str) -> Parameter:
    return word(name, says, ON_OFF)


def number(
    name: str, says: str, *, least: int | None = None, most: int = 2**53
) -> Parameter:
    bounds = {"maximum": most} if least is None else {"minimum": least, "maximum": most}
    return Parameter(name, says, {"type": "integer", **bounds})


_DESCRIBED = (
    flag("active", "Only jobs that have not ended."),
    number("after", "Only what came after this event, by its number.", least=0),
    number("attempt", "The attempt that is meant, the last one by default.", least=1),
    text("base", "The folder in which relative repositories of the batch are."),
    text("before", "Only jobs that are older than this one: `next` of another page."),
    word("by", "What it is added up by, `day` by default.", GROUPS),
    flag("cancel", "End its jobs first."),
    flag("failed", "Only jobs that need somebody to look at them."),
    number("fence", "The fence of the attempt.", least=1),
    flag("follow", "Go on with what comes, until it ends."),
    word("format", "JSON lines, or a stream of events.", ("jsonl", "sse")),
    word("form", "Which view of it, `patch` by default.", DIFF_FORMS),
    texts("job", "Only those of these jobs: ids, or the beginnings or ends of some."),
    words("kind", "Only those of these kinds.", KINDS),
    texts("label", "Only those with all of these labels."),
    number("limit", "At most so many.", least=1),
    flag("newest", "The last ones, not the first."),
    number("offset", "Where to begin, in bytes; counted from the end below zero."),
    texts("origin", "Only those that came this way, such as `cli`."),
    text("parent", "The attempt that submits them, as JSON: job, attempt and fence."),
    flag("quick", "Without what takes time to find out."),
    flag("raw", "Byte for byte, with the secrets that may be in it."),
    flag("removed", "Those that were removed too."),
    texts("repo", "Only those of these repositories."),
    text("since", "Only what came since a time, or within a span such as `2h`."),
    words("state", "Only those in these states.", STATES),
    word("stream", "Which output, `both` by default.", ("stdout", "stderr", "both")),
    number("tail", "Only so many of the last lines.", least=0, most=1_000_000),
    text("timeout", "How long to wait at most: seconds, or a span such as `30s`."),
    text("until", "Only what came before a time."),
    word(
        "wait",
        "Answer only when it is so, or when it took too long.",
        ("ready", "idle"),
    ),
    texts("work", "Only those of these workflow instances or EPIC runs, by their ids."),
)
#: Headers that mean something to some routes.
HEADERS = {
    one.name: one
    for one in (
        text("idempotency-key", "Repeated with the same body, it makes nothing again."),
        text("if-match", "Only if what is there has this ETag."),
        text("last-event-id", "For a stream: the last event that was heard."),
        text("if-none-match", "No body (304) if what is there has this ETag."),
    )
}
_BY_NAME = {parameter.name: parameter for parameter in _DESCRIBED}


def described(parameter: str | Parameter) -> Parameter:
    """What is known of a parameter, by its name."""
    if isinstance(parameter, Parameter):
        return parameter
    return _BY_NAME.get(parameter) or text(parameter, "")
