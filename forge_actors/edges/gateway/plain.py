"""The common request, recognised in what was read without a state machine.

A request is plain if it is complete, as most are that come through a socket of this
machine, and if nothing in its head asks for more than its bytes say. Whatever else a
client sends, and everything that has to be refused, is left to h11. So a request means
the same whichever of the two read it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote

from forge_actors.edges.gateway.messages import OWNER, Request, request_id

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.edges.gateway.messages import Limits

_END = b"\r\n\r\n"
#: Stricter than h11: no value is empty, folded, or has white space around it.
_HEAD = re.compile(
    r"(?P<method>GET|POST|DELETE) (?P<target>/[!-~]*) HTTP/1\.1\r\n"
    r"(?P<fields>(?:[A-Za-z0-9_-]+: ?[!-~]+(?:[ \t]+[!-~]+)*\r\n)+)"
)
_LENGTH = re.compile(r"[0-9]{1,12}")
#: What changes how a request is read, or is refused.
_SPECIAL = ("transfer-encoding", "expect", "upgrade", "origin")


class Plain(NamedTuple):
    """A request, how many bytes it had, and whether its connection goes on."""

    request: Request
    size: int
    keeps: bool


def read_plain(data: bytearray, hosts: frozenset[str], limits: Limits) -> Plain | None:
    """The plain request that `data` begins with; None if there is none."""
    end = data.find(_END, 0, limits.head_bytes)
    if end < 0:
        return None
    try:
        found = _HEAD.fullmatch(data[: end + 2].decode("ascii"))
    except UnicodeDecodeError:
        return None
    if found is None:
        return None
    method, target, fields = found.groups()
    headers: dict[str, str] = {}
    for line in fields.split("\r\n")[:-1]:
        name, _, value = line.partition(":")
        name = name.lower()
        if name in headers or name in _SPECIAL:
            return None
        headers[name] = value.lstrip(" ")
    connection = headers.get("connection", "keep-alive")
    if headers.get("host") not in hosts or connection not in ("keep-alive", "close"):
        return None
    length = headers.get("content-length", "0")
    if not _LENGTH.fullmatch(length):
        return None
    begin = end + len(_END)
    size = begin + int(length)
    if int(length) > limits.body_bytes or size > len(data):
        return None
    body = bytes(memoryview(data)[begin:size])
    request = make_request(method, target, headers, body)
    if request is None:
        return None
    return Plain(request, size, connection == "keep-alive")


def make_request(
    method: str, target: str, headers: dict[str, str], body: bytes = b""
) -> Request | None:
    """The request for a target such as `/v1/jobs?state=queued`.

    None if a part of its path stands for another place, or has what no name has.
    """
    path, _, query = target.partition("?")
    names: Sequence[str]
    parts = tuple(part for part in path.split("/") if part)
    if "%" in path:
        parts = tuple(unquote(part) for part in parts)
        if any("\0" in part for part in parts):
            return None
        # A slash within a part leads nowhere else either.
        names = [name for part in parts for name in part.split("/")]
    else:
        names = parts
    if "." in names or ".." in names:
        return None
    return Request(method, parts, query, headers, body, OWNER, request_id(headers))
