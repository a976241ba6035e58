"""Finding the agent that an earlier service left at work.

The lock tells whether an agent lives, its file tells who that is. Nothing that is read
is trusted before boot, pid namespace, pid and start agree, and nothing is waited for
without a limit.
"""

from __future__ import annotations

import os
import signal
import socket
import struct
from typing import TYPE_CHECKING

import msgspec
import trio
from msgspec import Struct

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent.listener import NAME, PROTOCOL
from forge_actors.edges.node.agent.tree import Process
from forge_actors.edges.node.agent_lock import living_instance, wait_for_end
from forge_actors.edges.node.agent_process import (
    ANSWER_LIMIT,
    AgentProcess,
    HungUp,
    NotServed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.edges.node import wire

#: Seconds an agent whose service is gone may take to end its jobs. It needs 5 s.
END_LIMIT = 30.0
#: Seconds an agent whose socket was removed may take to make it again.
RENEW_LIMIT = 3.0
#: Seconds between two tries to connect, doubled up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.01, 0.25
#: Bytes of the file that are looked at.
_MOST = 64 * 1024

_CREDENTIALS = struct.Struct("3i")


class Card(Struct, frozen=True):
    """What an agent that can be found says of itself in its file."""

    protocol: int
    instance: str
    pid: int
    start_ticks: int
    boot_id: str
    namespace: int
    socket: str
    secret: str
    release: str

    def __repr__(self) -> str:
        return f"<node agent {self.instance}, pid {self.pid}>"

    def process(self) -> Process | None:
        """Its process, if that is still the same one."""
        if self.boot_id != tree.boot_id():
            return None
        if not tree.HAS_PROC:
            return _unseen(self.pid, self.start_ticks)
        process = tree.read_process(self.pid)
        if process is None or process.start != self.start_ticks or process.defunct:
            return None
        return process


def _unseen(pid: int, start: int) -> Process | None:
    """A process of which only its pid can be known."""
    try:
        os.kill(pid, 0)
    except OSError:
        return None
    return Process(pid, 0, pid, pid, start, False, "agent")


class _NobodyListens(Exception):
    """The socket is gone, or another one's."""


def read_card(home: Path) -> Card | None:
    """The file of the agent in this home; None if there is none that makes sense."""
    try:
        with open(home / NAME, "rb") as file:
            return msgspec.json.decode(file.read(_MOST), type=Card)
    except (FileNotFoundError, msgspec.DecodeError, RecursionError):
        return None


def durable_agent(home: Path) -> int | None:
    """The pid of an agent that outlives its service, while it lives in this home."""
    card = read_card(home)
    if card is None or card.process() is None or living_instance(home) is None:
        return None
    return card.pid


async def end_agent(home: Path) -> int | None:
    """End such an agent, its jobs first, without a service; its pid, or None.

    Raises:
        LauncherDown: it did not end within 30 s.
    """
    card = read_card(home)
    process = None if card is None else card.process()
    if process is None or living_instance(home) is None:
        return None
    tree.send(process, signal.SIGTERM)
    await wait_until_ended(home)
    return process.pid


async def find_agent(home: Path, hello: wire.Hello) -> AgentProcess | None:
    """The agent that lives in this home, greeted; None once there is none.

    Raises:
        LauncherDown: one lives, and can neither be talked to nor be waited for.
    """
    if living_instance(home) is None:
        return None
    card = read_card(home)
    process = None if card is None else card.process()
    if card is None or process is None:
        # It listens to nobody but the service that has started it, and ends with it.
        await wait_until_ended(home)
        return None
    if card.namespace not in (0, tree.pid_namespace()):
        raise LauncherDown(
            f"the node agent of {home} runs in another container, as pid {card.pid}"
            " there; end it there first"
        )
    if card.protocol != PROTOCOL:
        raise LauncherDown(
            f"the node agent of {home} (pid {card.pid}) is of release {card.release}"
            " and speaks another protocol; end its jobs with that release first, or"
            f" end them all: kill {card.pid}"
        )
    try:
        agent = await _talk_to(home, card, process, hello)
    except HungUp:
        await wait_until_ended(home)
        return None
    except _NobodyListens:
        agent = await _have_it_listen(home, card, process, hello)
    if agent is not None and agent.idle and card.release != hello.release:
        # Nothing keeps us from having one of our own release.
        await agent.retire()
        await wait_until_ended(home)
        return None
    return agent


async def wait_until_ended(home: Path) -> None:
    """Wait for an agent that ends.

    Raises:
        LauncherDown: it did not within 30 s.
    """
    with trio.move_on_after(END_LIMIT) as waiting:
        await wait_for_end(home)
    if waiting.cancelled_caught:
        raise LauncherDown(
            f"the node agent of an earlier service still ends jobs of {home}; "
            f"its time of start and pid are in {home / 'agent.lock'}"
        )


async def _talk_to(
    home: Path, card: Card, process: Process, hello: wire.Hello
) -> AgentProcess | None:
    """Connect and say hello.

    Raises:
        LauncherDown: it does not answer, or serves another runtime.
        HungUp: it ends just now.
        _NobodyListens: there is no way to it.
    """
    agent = None
    try:
        with trio.fail_after(ANSWER_LIMIT):
            sock = await _connect(card)
            agent = AgentProcess(home, sock, found=process)
            await agent.greet(msgspec.structs.replace(hello, secret=card.secret))
    except BaseException as error:
        if agent is not None:
            agent.socket.close()
        if isinstance(error, trio.TooSlowError):
            raise LauncherDown(_silent(home, card)) from None
        if isinstance(error, NotServed):
            if error.code == "ending":
                await wait_until_ended(home)
                return None
            message = f"the node agent of {home} serves another runtime: {error}"
            raise LauncherDown(message) from None
        raise
    return agent


def _silent(home: Path, card: Card) -> str:
    said = f"the node agent of {home} (pid {card.pid}) does not answer"
    process = card.process()
    if process is not None and process.stopped:
        return f"{said}: it is stopped; let it go on: kill -CONT {card.pid}"
    return f"{said} within {ANSWER_LIMIT:g} s; end it and its jobs: kill {card.pid}"


async def _connect(card: Card) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.setblocking(False)
    pause = _FIRST_PAUSE
    try:
        while True:
            try:
                sock.connect(card.socket)
                break
            except BlockingIOError:  # more wait there than it has answered
                await trio.sleep(pause)
                pause = min(pause * 2, _LAST_PAUSE)
            except OSError:
                raise _NobodyListens from None
        if _peer(sock) not in (None, card.pid):
            raise _NobodyListens
    except BaseException:
        sock.close()
        raise
    return sock


def _peer(sock: socket.socket) -> int | None:
    """The pid of the one who listens, where the system tells."""
    if not hasattr(socket, "SO_PEERCRED"):
        return None
    data = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    pid: int = _CREDENTIALS.unpack(data)[0]
    return pid


async def _have_it_listen(
    home: Path, card: Card, process: Process, hello: wire.Hello
) -> AgentProcess | None:
    """Its socket was removed: ask it to make it again, or end it in the end.

    Raises:
        LauncherDown: neither is possible.
    """
    tree.send(process, signal.SIGHUP)
    pause = _FIRST_PAUSE
    until = trio.current_time() + RENEW_LIMIT
    while trio.current_time() < until and living_instance(home) is not None:
        await trio.sleep(pause)
        pause = min(pause * 2, _LAST_PAUSE)
        try:
            return await _talk_to(home, card, process, hello)
        except _NobodyListens:
            continue
        except HungUp:
            break
    now = card.process()
    if now is not None and now.stopped:
        raise LauncherDown(_silent(home, card))
    for number in (signal.SIGTERM, signal.SIGKILL):
        tree.send(process, number)
        with trio.move_on_after(END_LIMIT):
            await wait_for_end(home)
            return None
    raise LauncherDown(_silent(home, card))
