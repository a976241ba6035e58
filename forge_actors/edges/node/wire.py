"""The messages between the launcher and the node agent, one JSON object a line.

What is bytes to the system (arguments, environment, paths) travels as latin-1, one
character a byte: JSON has no bytes, and a command line need not be UTF-8.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct, structs

from forge_actors.domain.launch import (
    ArtifactOrder,
    Ending,
    LaunchOrder,
    ProcessIdentity,
    ProcessLimits,
    Receipt,
    Secrets,
)
from forge_actors.domain.worktrees import WorktreePlace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.ownership import Owner


class Start(Struct, tag_field="op", tag="start", omit_defaults=True):
    """A `LaunchOrder`. The same job and attempt again starts nothing."""

    job: str
    attempt: int
    fence: int
    argv: list[str]
    cwd: str
    env: dict[str, str]
    stdin: str | None
    log: str
    output_limit: int
    wall: float | None
    idle: float | None
    stop_signal: str
    grace: float
    keep_leftovers: bool
    secrets: dict[str, str] = {}
    pty: bool = False
    limits: ProcessLimits | None = None
    after_job: str | None = None
    artifacts: ArtifactOrder | None = None
    worktree: WorktreePlace | None = None
    outputs: bool = False
    lasting: bool = False
    room: int | None = None


class Stop(Struct, tag_field="op", tag="stop", omit_defaults=True):
    """`nth`: the how manyth stop it is of one that lasts."""

    job: str
    attempt: int
    grace: float | None
    ending: Ending
    nth: int | None = None


class Pause(Struct, tag_field="op", tag="pause"):
    job: str
    attempt: int


class Resume(Struct, tag_field="op", tag="resume"):
    job: str
    attempt: int


class Forget(Struct, tag_field="op", tag="forget"):
    """The receipts of these attempts are saved; each is a job and its number."""

    attempts: list[tuple[str, int]]


class Hello(Struct, tag_field="op", tag="hello"):
    """The first line of a connection, answered by `Ready` or `Unwelcome`.

    `env` is what every job has in its environment; each order adds its own to it.
    `bound`: everything is to end with this connection. `files`: how many a job may have
    open, where that is not what the agent began with.
    """

    secret: str
    epoch: int
    instance: str
    release: str
    bound: bool
    env: dict[str, str]
    files: int | None = None

    def __repr__(self) -> str:
        return f"<hello of {self.instance}, epoch {self.epoch}>"


class Watch(Struct, tag_field="op", tag="watch"):
    """Answered once, by an `Output` with the same `known`."""

    job: str
    attempt: int
    known: int


class Known(Struct, frozen=True):
    """An attempt that runs, or that is held and has no identity yet.

    `stops`: how many of them one that lasts was asked for.
    """

    job: str
    attempt: int
    fence: int
    identity: ProcessIdentity | None
    stops: int | None = None


class Ping(Struct, tag_field="op", tag="ping"):
    """Answered by `Pong`."""


class Quit(Struct, tag_field="op", tag="quit"):
    """End every job, and then yourself."""


class Ready(Struct, tag_field="event", tag="ready"):
    """What there is. So many receipts follow as are outstanding.

    `hands_over`: it can give descriptors to a process, and leave one alone that lasts.
    `rooms`: it heeds the `room` of an order.
    """

    instance: str
    boot_id: str
    namespace: int
    running: list[Known]
    held: list[Known]
    outstanding: int
    hands_over: bool = False
    rooms: bool = False


class Unwelcome(Struct, tag_field="event", tag="refused"):
    """This service is not served, or no more, and the connection ends."""

    code: Literal["ending", "epoch", "secret", "hello", "replaced"]
    reason: str


class Pong(Struct, tag_field="event", tag="pong"):
    pass


class Started(Struct, tag_field="event", tag="started"):
    job: str
    attempt: int
    pid: int
    start_ticks: int


class Exited(Struct, tag_field="event", tag="exited"):
    receipt: Receipt


class Output(Struct, tag_field="event", tag="output"):
    job: str
    attempt: int
    known: int


class Error(Struct, tag_field="event", tag="error"):
    """The agent could not do what a message asked; jobs are not affected."""

    job: str | None
    problem: str


Event = Ready | Unwelcome | Pong | Started | Exited | Output | Error

_START = b'{"op":"start",'

encode = msgspec.json.Encoder().encode
decode_lines = msgspec.json.Decoder(Event).decode_lines


def start(order: LaunchOrder) -> Start:
    return Start(
        job=order.job,
        attempt=order.attempt,
        fence=order.fence,
        argv=[_latin(text) for text in order.argv],
        cwd=_latin(order.cwd),
        env=latin_all(order.env),
        stdin=None if order.stdin is None else _latin(order.stdin),
        log=_latin(order.log),
        output_limit=order.output_limit,
        wall=order.wall,
        idle=order.idle,
        stop_signal=order.stop_signal,
        grace=order.grace,
        keep_leftovers=order.keep_leftovers,
        secrets=Secrets(latin_all(order.secrets)) if order.secrets else {},
        pty=order.pty,
        limits=order.limits,
        after_job=None if order.after_job is None else _latin(order.after_job),
        artifacts=None if order.artifacts is None else _latin_order(order.artifacts),
        worktree=None if order.worktree is None else _latin_place(order.worktree),
        outputs=order.outputs,
        lasting=order.lasting,
        room=order.room,
    )


def start_line(order: LaunchOrder) -> bytes:
    """`start(order)`, encoded.

    Nearly always all of an order is ASCII, which is the same in latin-1. Then the order
    itself is the message, which costs a third of making one.
    """
    try:
        line = encode(order)
    except UnicodeEncodeError:  # a surrogate stands for a byte that is no UTF-8
        return encode(start(order))
    return _START + line[1:] if line.isascii() else encode(start(order))


def hello(
    environment: Mapping[str, str],
    owner: Owner | None = None,
    *,
    bound: bool = True,
    files: int | None = None,
) -> Hello:
    """That of the owner of a home, or of one who needs no home."""
    env = latin_all(environment)
    if owner is None:
        return Hello("", 0, "", "", bound, env, files)
    return Hello("", owner.epoch, owner.instance, owner.release, bound, env, files)


def _latin_order(order: ArtifactOrder) -> ArtifactOrder:
    patterns = tuple(map(_latin, order.patterns))
    return structs.replace(order, patterns=patterns, home=_latin(order.home))


def _latin_place(place: WorktreePlace) -> WorktreePlace:
    return structs.replace(
        place,
        root=_latin(place.root),
        git_dir=_latin(place.git_dir),
        common_dir=_latin(place.common_dir),
        setup=tuple(map(_latin, place.setup)),
        setup_state=_latin(place.setup_state),
    )


def latin_all(environment: Mapping[str, str]) -> dict[str, str]:
    """An environment as it travels."""
    return {_latin(name): _latin(value) for name, value in environment.items()}


def _latin(text: str) -> str:
    return text if text.isascii() else os.fsencode(text).decode("latin-1")
