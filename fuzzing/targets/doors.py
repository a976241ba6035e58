"""What comes in from outside of this machine: browsers, and the export of a home."""

from __future__ import annotations

import io
import shutil
import tempfile
from pathlib import Path

from forge_actors.domain.errors import InvalidInput, StoreFailed
from forge_actors.edges.archive import Writer, unpack
from forge_actors.edges.gateway.auth import Gate
from forge_actors.edges.gateway.messages import Request
from forge_actors.edges.gateway.plain import make_request
from forge_actors.edges.gateway.refusal import Refusal
from fuzzing.place import file_of, folder
from fuzzing.target import (
    Broken,
    Refusing,
    Target,
    attempt,
    check_message,
    finished,
    same,
)

_TOKEN = "t" * 40
_MOST = {"store.sqlite": 64, "logs/a1.1.stdout": 32, "manifest.json": 64}


def door(data: bytes) -> None:
    """The first line is a method and a target, the others are headers."""
    first, *lines = data.decode("latin-1").split("\n")
    method, _, target = first.partition(" ")
    pairs = [line.partition(":") for line in lines[:12]]
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    request = make_request(method, target, headers)
    if request is None:
        return
    gate = Gate(_TOKEN, "forge", rate=1000.0, now=lambda: 5.0)
    ticket = attempt(gate.ticket, target)
    try:
        asker = gate.admit(request)
    except Refusal as refusal:
        check_message(str(refusal))
        same(refusal.response().status, refusal.status, "the answer")
    else:
        if asker.kind not in ("token", "nobody"):
            raise Broken(f"{headers} let in {asker}")
        if asker.kind == "token" and _TOKEN not in headers.get("authorization", ""):
            raise Broken(f"{headers} passed for the token")
    answer = finished(gate.login(request))
    if answer.status < 400 and (ticket is None or ticket not in request.query):
        raise Broken(f"{request.query!r} logged somebody in")
    if ticket is not None:
        _follow(gate, ticket)


def _follow(gate: Gate, ticket: str) -> None:
    """Where a browser is led that comes with a ticket is here."""
    answer = finished(gate.login(Request("GET", ("login",), f"ticket={ticket}", {})))
    place = answer.headers.get("location", "/")
    if not place.startswith("/") or place.startswith(("//", "/\\")):
        raise Broken(f"it leads to {place!r}")
    if any("\r" in text or "\n" in text for text in answer.headers.values()):
        raise Broken(f"{answer.headers} have lines of their own")


def archives(data: bytes) -> None:
    place = Path(tempfile.mkdtemp(dir=folder()))
    try:
        (place / "logs").mkdir()
        members = Refusing(InvalidInput, StoreFailed)(
            unpack, file_of("home.tar", data), place, _MOST.get
        )
        written = {
            str(path.relative_to(place)): path.read_bytes()
            for path in place.rglob("*")
            if not path.is_dir()
        }
        if not set(written) <= set(_MOST) or any(
            len(text) > _MOST[name] for name, text in written.items()
        ):
            raise Broken(f"{written} were unpacked")
        if members is not None:
            again = Writer(file := io.BytesIO(), 0)
            for name, text in written.items():
                again.add(name, io.BytesIO(text), len(text))
            again.end()
            same(again.members, members, "packed again")
            same(file.tell() % 512, 0, "whole blocks")
    finally:
        shutil.rmtree(place)


def _archive(*names: str) -> bytes:
    writer = Writer(file := io.BytesIO(), 0)
    for name in names:
        writer.add(name, io.BytesIO(b"content"), 7)
    writer.end()
    return file.getvalue()


TARGETS = (
    Target(
        "door",
        "nobody is let in without the token, and nobody is led away",
        door,
        (
            b"GET /v1/jobs\nauthorization: Bearer " + _TOKEN.encode(),
            b"GET /v1/jobs\nauthorization: bearer x\nsec-fetch-site: cross-site",
            b"GET /login?ticket=x&ticket=y\ncookie: forge=a; forge=b; x",
            b"POST /v1/jobs\ncookie: forge=\xff\norigin: http://evil",
            *(b"GET /jobs?a=b", b"GET //evil/x", b"GET /\\evil", b"HEAD /"),
        ),
        (
            *(b"\nauthorization: Bearer ", b"\ncookie: forge=", b"/login?ticket="),
            *(b"sec-fetch-site: ", b"\\", b"//", b"/v1/", b"/mcp", b"%0d%0a"),
        ),
    ),
    Target(
        "archives",
        "an export is unpacked as it was packed, and nothing lands anywhere else",
        archives,
        (
            _archive("store.sqlite", "logs/a1.1.stdout", "manifest.json"),
            _archive("../x"),
            _archive("store.sqlite", "store.sqlite"),
            _archive("logs/../../x"),
            _archive("store.sqlite")[:700],
        ),
        (b"store.sqlite", b"logs/", b"../", b"0000644\0", b"ustar  \0", b"\xff" * 8),
    ),
)
