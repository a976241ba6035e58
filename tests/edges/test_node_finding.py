"""What a service may find in a home: stale files, strangers, and agents that hang."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node import agent_lock, agent_process, finding, wire
from forge_actors.edges.node.agent import listener, tree
from forge_actors.edges.node.finding import read_card
from forge_actors.edges.node.launcher import open_launcher
from tests.edges.node_jobs import named, opened, order, owner, survivors

if TYPE_CHECKING:
    from collections.abc import Iterator


def card_of(home: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((home / "agent.json").read_text())
    return found


def write_card(home: Path, **changes: Any) -> None:
    """The file of an agent that would be this process, or is none at all."""
    own = {
        "protocol": listener.PROTOCOL,
        "instance": "1-1",
        "pid": os.getpid(),
        "start_ticks": tree.start_ticks(os.getpid()),
        "boot_id": tree.boot_id(),
        "namespace": tree.pid_namespace(),
        "socket": str(home / "agent.sock"),
        "secret": "s",
        "release": "r0",
    }
    (home / "agent.json").write_text(json.dumps(own | changes))


@contextmanager
def locked(home: Path) -> Iterator[None]:
    """The lock of the home's agent is held by a process that is none."""
    command = ["flock", "-x", str(home / "agent.lock"), "-c", "echo; read line"]
    holder = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        yield


async def runs(home: Path) -> int:
    """Open a launcher, see that it works, and tell the pid of its agent."""
    async with opened(home, owner=owner(3), durable=True) as launcher:
        attempt = launcher.launch(order(home, "true", job=f"{os.urandom(4).hex()}"))
        assert (await attempt.exited()).exit_code == 0
        return launcher.agent_pid


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": 2**22 + 1},
        {"start_ticks": 7},
        {"boot_id": "another"},
        {"namespace": 1},
        {"protocol": 99},
        {"socket": "/nowhere"},
        {"pid": "text"},
    ],
    ids=lambda changes: next(iter(changes)),
)
async def test_a_file_that_a_dead_agent_left_keeps_nobody_out(
    durable_home: Path, changes: dict[str, Any]
) -> None:
    write_card(durable_home, **changes)
    assert await runs(durable_home) != os.getpid()
    await agent_lock.wait_for_end(durable_home)


@pytest.mark.parametrize("text", ["", "{", "[]", "\xff", '{"pid":1}'])
async def test_a_file_that_makes_no_sense_keeps_nobody_out(
    durable_home: Path, text: str
) -> None:
    (durable_home / "agent.json").write_text(text)
    await runs(durable_home)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"namespace": 1}, "in another container"),
        ({"protocol": 99}, "speaks another protocol"),
        ({"start_ticks": 7}, "still ends jobs"),
        ({"boot_id": "another"}, "still ends jobs"),
    ],
)
async def test_whoever_holds_the_lock_is_not_mistaken_for_the_agent_of_the_file(
    durable_home: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    sentence: str,
) -> None:
    monkeypatch.setattr(finding, "END_LIMIT", 0.05)
    (durable_home / "agent.lock").write_text("1-1")
    write_card(durable_home, **changes)
    with locked(durable_home), pytest.raises(LauncherDown, match=sentence):
        await runs(durable_home)


async def test_an_agent_that_is_stopped_is_named_in_bounded_time(
    durable_home: Path, monkeypatch: pytest.MonkeyPatch, lasting: str
) -> None:
    home = durable_home
    monkeypatch.setattr(finding, "ANSWER_LIMIT", 0.1)
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting)).started()
        pid = launcher.agent_pid
    os.kill(pid, signal.SIGSTOP)
    while not (process := tree.read_process(pid)) or not process.stopped:
        os.sched_yield()
    for remove_socket in (False, True):
        if remove_socket:
            monkeypatch.setattr(finding, "RENEW_LIMIT", 0.05)
            (home / "agent.sock").unlink()
        with pytest.raises(LauncherDown, match=rf"kill -CONT {pid}"):
            await runs(home)
    os.kill(pid, signal.SIGCONT)
    monkeypatch.undo()
    assert await runs(home) == pid
    assert len(survivors(lasting)) == 1


@pytest.mark.parametrize("put_there", [False, True])
async def test_a_socket_that_was_removed_is_made_again(
    durable_home: Path, lasting: str, put_there: bool
) -> None:
    home = durable_home
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting)).started()
        pid = launcher.agent_pid
    (home / "agent.sock").unlink()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as stranger:
        if put_there:
            stranger.bind(str(home / "agent.sock"))
            stranger.listen()
        assert await runs(home) == pid
    assert len(survivors(lasting)) == 1


async def test_an_agent_that_cannot_be_reached_any_more_is_ended(
    durable_home: Path, monkeypatch: pytest.MonkeyPatch, lasting: str
) -> None:
    home = durable_home
    monkeypatch.setattr(finding, "RENEW_LIMIT", 0.05)
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting)).started()
        pid = launcher.agent_pid
    (home / "agent.sock").unlink()
    (home / "agent.sock").mkdir()
    with pytest.raises(LauncherDown, match="ended at its start"):
        await runs(home)
    assert "something else stands there" in (home / "agent.log").read_text()
    (home / "agent.sock").rmdir()
    (home / "agent.log").write_text("")
    async with opened(home, owner=owner(2), durable=True) as launcher:
        assert launcher.agent_pid != pid
        key = (named(home), 1)
        await launcher.reconcile({key: None}, same_boot=True)
        adopted = launcher.adopt(*key)
        assert adopted is not None
        assert (await adopted.exited()).ending == "owner"
    assert not survivors(lasting)


class Peer:
    """A raw connection to the agent of a home."""

    def __init__(self, home: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.connect(str(home / "agent.sock"))  # waits its turn
        self.socket.settimeout(10)

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def hello(self, home: Path, **changes: Any) -> None:
        usual = {"secret": card_of(home)["secret"], "epoch": 9, "bound": False}
        hello = {**json.loads(wire.encode(wire.hello({}))), **usual, **changes}
        self.say(json.dumps(hello).encode() + b"\n")

    def hear(self) -> dict[str, Any]:
        data = b""
        while not data.endswith(b"\n"):
            more = self.socket.recv(4096)
            if not more:
                raise EOFError
            data += more
        heard: dict[str, Any] = json.loads(data.splitlines()[0])
        return heard

    def hear_end(self) -> bool:
        try:
            return self.socket.recv(4096) == b""
        except ConnectionResetError:
            return True

    def close(self) -> None:
        self.socket.close()


async def test_nobody_is_served_without_a_proper_hello(durable_home: Path) -> None:
    home = durable_home
    async with opened(home, owner=owner(5), durable=True) as launcher:
        for changes, code in [
            ({"secret": "0" * 64}, "secret"),
            ({"secret": None}, "secret"),
            ({"secret": "\u00e9"}, "secret"),
            ({"epoch": 4}, "epoch"),
            ({"epoch": "9"}, "hello"),
            ({"env": 3}, "hello"),
            ({"env": {"A": "\u6f22"}}, "hello"),
            ({"op": "quit"}, "hello"),
        ]:
            peer = Peer(home)
            peer.hello(home, **changes)
            heard = peer.hear()
            assert (heard["event"], heard["code"]) == ("refused", code)
            assert card_of(home)["secret"] not in heard["reason"]
            assert peer.hear_end()
            peer.close()
        for line in (b"\xff\xfe\n", b"no json\n", b"[]\n", b"\n"):
            peer = Peer(home)
            peer.say(line)
            assert peer.hear()["code"] == "hello"
            peer.close()
        attempt = launcher.launch(order(home, "true"))
        assert (await attempt.exited()).exit_code == 0


async def test_who_connects_and_says_nothing_harms_nobody(durable_home: Path) -> None:
    home = durable_home
    async with opened(home, owner=owner(5), durable=True) as launcher:
        descriptors = Path(f"/proc/{launcher.agent_pid}/fd")
        before = len(list(descriptors.iterdir()))
        silent = [Peer(home) for _ in range(listener.MAX_PENDING + 3)]
        silent[-1].say(b'{"op":"hel')
        attempt = launcher.launch(order(home, "true"))
        assert (await attempt.exited()).exit_code == 0
        # Of too many the first ones are let go.
        assert silent[0].hear_end()
        held = len(list(descriptors.iterdir())) - before
        assert held <= listener.MAX_PENDING
        for peer in silent:
            peer.close()
    assert await runs(home)


async def test_a_service_that_dies_in_the_middle_of_a_line_has_not_said_it(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting, job="runs")).started()
    dies = Peer(home)
    dies.hello(home)
    assert dies.hear()["event"] == "ready"
    whole = wire.start_line(order(home, "sleep", lasting, job="whole"))
    torn = wire.start_line(order(home, "sleep", lasting, job="torn"))
    dies.say(whole + b"\n" + torn)
    dies.close()
    async with opened(home, owner=owner(9), durable=True) as launcher:
        reserved = {(named(home, job), 1): None for job in ("runs", "whole", "torn")}
        await launcher.reconcile(reserved, same_boot=True)
        known = [launcher.adopt(*key) for key in reserved]
        assert [each is not None for each in known] == [True, True, False]
        launcher.end_all()
    assert not survivors(lasting)


async def test_what_a_replaced_service_said_last_does_not_happen(
    durable_home: Path, lasting: str
) -> None:
    """What it told and the agent had not read when the new one came."""
    home = durable_home
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting, job="runs")).started()
        pid = launcher.agent_pid
    old = Peer(home)
    old.hello(home)
    old.hear()
    os.kill(pid, signal.SIGSTOP)
    new = Peer(home)
    new.hello(home, epoch=10)
    old.say(wire.start_line(order(home, "sleep", lasting, job="late")) + b"\n")
    os.kill(pid, signal.SIGCONT)
    running = [each["job"] for each in new.hear()["running"]]
    late = named(home, "late")
    journal = home / "receipts" / f"{read_card(home).instance}.jsonl"  # type: ignore[union-attr]
    # Either it was heard first, and is told, or it never began.
    assert (late in running) == (f'"job":"{late}"' in journal.read_text())
    old.close()
    new.close()


async def test_a_hello_that_never_comes_is_not_waited_for(durable_home: Path) -> None:
    program = (
        "import sys; sys.path.append(sys.argv[1])\n"
        "from forge_actors.edges.node.agent import listener\n"
        "listener.HELLO_LIMIT = 0.05\n"
        "sys.argv[1:2] = []\n"
        "from forge_actors.edges.node.agent.__main__ import main\n"
        "sys.exit(main())\n"
    )
    short = durable_home / "short.py"
    short.write_text(program)
    root = str(Path(agent_process.__file__).parents[3])
    home = durable_home
    ours, theirs = socket.socketpair()
    with ours:
        fd = str(theirs.fileno())
        listen = ["--home", str(home), "--listen", str(home / "agent.sock")]
        process = await trio.lowlevel.open_process(
            ["python3", "-I", "-S", str(short), root, "--fd", fd, *listen],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        ours.sendall(wire.encode(wire.hello({}, bound=False)) + b"\n")
        assert b"ready" in ours.recv(4096)
        peer = Peer(home)
        assert peer.hear_end()
        peer.close()
    assert await process.wait() == 0
    assert not (home / "agent.json").exists()
    assert not (home / "agent.sock").exists()


async def test_a_cancelled_search_leaves_the_agent_as_it_is(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, owner=owner(1), durable=True) as launcher:
        await launcher.launch(order(home, "sleep", lasting)).started()
        pid = launcher.agent_pid
    os.kill(pid, signal.SIGSTOP)
    with trio.move_on_after(0.1):
        async with open_launcher(home, owner=owner(2), durable=True):
            raise AssertionError("a stopped agent has answered")
    os.kill(pid, signal.SIGCONT)
    assert await runs(home) == pid
