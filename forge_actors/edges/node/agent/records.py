"""Lines that the desk writes into its book, or says, where they are made often."""

from __future__ import annotations

from json.encoder import encode_basestring_ascii as _quoted
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent.lines import line_of

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.tree import Mark

    Message = dict[str, Any]


def output_line(key: Mark, known: int) -> bytes:
    """The answer to one who waits for output."""
    about = {"job": key[0], "attempt": key[1], "known": known}
    return line_of({"event": "output", **about})


def record(kind: str, key: Mark, stamp: Message) -> Message:
    """What is written down of an attempt that has no receipt yet."""
    return {"record": kind, "job": key[0], "attempt": key[1], **stamp}


def starting(key: Mark, fence: int, names: str, lasting: str | None) -> bytes:
    """The record of one that begins, with `names_quoted` as its end; of one that lasts
    with its stop signal."""
    if lasting is not None:
        names = f',"lasting":{_quoted(lasting)}{names}'
    line = (
        f'{{"record":"starting","job":{_quoted(key[0])},"attempt":{key[1]:d}'
        f',"fence":{fence:d}{names}'
    )
    return line.encode()


def exited(receipt: bytes) -> bytes:
    """What a service is told of the end of an attempt."""
    return b'{"event":"exited","receipt":' + receipt + b"}"


def refused(code: str, reason: str) -> bytes:
    """What a service is told that is served no more."""
    return line_of({"event": "refused", "code": code, "reason": reason})


def names_quoted(instance: str, release: str) -> str:
    """The end of a record: who ordered it."""
    return f',"instance":{_quoted(instance)},"release":{_quoted(release)}}}'
