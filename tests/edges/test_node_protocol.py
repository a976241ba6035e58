"""The agent as a program: what it answers, what it writes down, what it survives."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from forge_actors.domain.launch import Receipt
from forge_actors.edges.node import agent_process, wire
from forge_actors.edges.node.agent import journal, kin, tree
from forge_actors.edges.node.agent.journal import Journal
from tests.edges.node_jobs import named, order, read_receipts, shell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.launch import LaunchOrder


class Agent:
    """A raw connection to an agent."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket, theirs = socket.socketpair()
        self.socket.settimeout(20)
        with theirs:
            self.process = agent_process._start_process(home, theirs.fileno())
        self._lines = self.socket.makefile("rb")
        self.say(wire.encode(wire.hello({})) + b"\n")
        self.ready = self.hear()
        self.journal = home / "receipts" / f"{self.ready['instance']}.jsonl"

    def say(self, data: bytes) -> None:
        self.socket.sendall(data)

    def start(self, wanted: LaunchOrder) -> None:
        self.say(wire.encode(wire.start(wanted)) + b"\n")

    def hear(self) -> dict[str, Any]:
        return cast("dict[str, Any]", json.loads(self._lines.readline()))

    def hear_end(self) -> dict[str, Any]:
        """The next receipt. Of a job that takes a moment the start is told before."""
        while (message := self.hear())["event"] == "started":
            pass
        return cast("dict[str, Any]", message["receipt"])

    def close(self) -> None:
        self._lines.close()
        self.socket.close()
        assert self.process.wait(20) == 0
        assert (self.home / "agent.log").read_text() == ""


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[Agent]:
    connected = Agent(tmp_path)
    yield connected
    connected.close()


def test_a_bad_message_is_answered_and_harms_nobody(agent: Agent) -> None:
    for line, job, problem in [
        (b"no json", None, "JSONDecodeError"),
        (b"[]", None, "AttributeError"),
        (b'{"job":"a"}', "a", "KeyError: 'op'"),
        (b'{"op":"dance","job":"a","attempt":1}', "a", "unknown op 'dance'"),
        (b'{"op":"start","job":["a"],"attempt":1}', ["a"], "TypeError"),
        (b"\xff\xfe", None, "UnicodeDecodeError"),
    ]:
        agent.say(line + b"\n")
        answer = agent.hear()
        assert (answer["event"], answer["job"]) == ("error", job)
        assert problem in answer["problem"]
    agent.start(order(agent.home, "true"))
    assert agent.hear_end()["exit_code"] == 0


def test_an_order_that_makes_no_sense_has_a_receipt(agent: Agent) -> None:
    agent.say(b'{"op":"start","job":"a","attempt":2,"fence":9,"argv":[]}\n')
    receipt = agent.hear()["receipt"]
    assert (receipt["job"], receipt["attempt"], receipt["fence"]) == ("a", 2, 9)
    assert receipt["ending"] == "spawn"
    assert "malformed order" in receipt["error"]


def test_messages_may_come_in_any_pieces(agent: Agent) -> None:
    first = wire.encode(wire.start(order(agent.home, "true", job="first")))
    second = wire.encode(wire.start(order(agent.home, "true", job="second")))
    data = first + b"\n" + second + b"\n"
    for place in range(0, len(data), 7):
        agent.say(data[place : place + 7])
    ended = {agent.hear_end()["job"] for _ in range(2)}
    assert ended == {named(agent.home, job) for job in ("first", "second")}


def test_a_start_that_is_repeated_starts_nothing(agent: Agent) -> None:
    wanted = shell(agent.home, "read -r < fifo")
    os.mkfifo(agent.home / "fifo")
    agent.start(wanted)
    first = agent.hear()
    agent.start(wanted)
    assert agent.hear() == first
    assert first["event"] == "started"
    (agent.home / "fifo").write_text("\n")
    receipt = agent.hear()
    agent.start(wanted)
    assert agent.hear() == receipt


def test_a_receipt_is_on_disk_before_it_is_told(agent: Agent) -> None:
    agent.start(order(agent.home, "false"))
    told = agent.hear_end()
    (written,) = read_receipts(agent.journal)
    assert (written.job, written.exit_code) == (told["job"], told["exit_code"])
    assert agent.journal.stat().st_mode & 0o777 == 0o600


def test_a_service_that_does_not_read_stops_no_job(agent: Agent) -> None:
    count = 300
    script = "head -c 8000 /dev/zero >&2"
    for number in range(count):
        agent.start(shell(agent.home, script, job=f"job-{number}"))
    # All of them end, though the socket is full: every receipt gets written.
    while len(list(read_receipts(agent.journal))) < count:
        os.sched_yield()
    assert len({agent.hear_end()["job"] for _ in range(count)}) == count


def test_a_journal_with_nothing_outstanding_is_deleted_at_the_end(
    tmp_path: Path,
) -> None:
    connected = Agent(tmp_path)
    connected.start(order(tmp_path, "true"))
    connected.hear_end()
    forget = {"op": "forget", "attempts": [[named(tmp_path), 1]]}
    connected.say(wire.encode(forget) + b"\n")
    connected.close()
    assert not connected.journal.exists()


def receipt_line(number: int, size: int) -> bytes:
    receipt = Receipt(f"{number}", 1, 1, "exit", 0.0, stderr_tail="x" * size)
    return wire.encode(receipt)


def test_a_forgotten_journal_is_emptied_only_once_it_is_large(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    kept = Journal(str(path))
    kept.append(("0", 1), receipt_line(0, 100))
    kept.forget(("0", 1))
    assert path.stat().st_size > 0
    kept.append(("1", 1), receipt_line(1, journal.LIMIT))
    kept.forget(("1", 1))
    kept.forget(("1", 1))
    assert path.stat().st_size == 0
    kept.append(("2", 1), receipt_line(2, 100))
    assert [each.job for each in read_receipts(path)] == ["2"]


def test_a_journal_that_is_never_empty_does_not_grow_for_ever(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    kept = Journal(str(path))
    kept.append(("0", 1), receipt_line(0, 100))
    for number in range(1, 400):
        kept.append((f"{number}", 1), receipt_line(number, 10_000))
        kept.forget((f"{number - 1}", 1)) if number > 1 else None
    assert path.stat().st_size <= journal.LIMIT + 20_000
    found = [each.job for each in read_receipts(path)]
    assert (found[0], found[-1]) == ("0", "399")


@pytest.mark.parametrize("promised", [True, False])
def test_a_journal_that_was_synced_is_replaced_only_by_one_that_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, promised: bool
) -> None:
    calls: list[tuple[str, int]] = []

    def inode(fd: int) -> int:
        return os.fstat(fd).st_ino

    real = os.replace

    def replace(draft: str, path: str) -> None:
        calls.append(("replace", Path(draft).stat().st_ino))
        real(draft, path)

    monkeypatch.setattr(journal, "_sync", lambda fd: calls.append(("sync", inode(fd))))
    monkeypatch.setattr(os, "fsync", lambda fd: calls.append(("folder", inode(fd))))
    monkeypatch.setattr(os, "replace", replace)
    path = tmp_path / "j.jsonl"
    kept = Journal(str(path))
    kept.append(("0", 1), receipt_line(0, 100))
    folder, first = tmp_path.stat().st_ino, path.stat().st_ino
    if promised:
        kept.sync()
        assert calls == [("sync", first), ("folder", folder)]
        kept.sync()
        assert calls[2:] == [("sync", first)], "its name is there already"
    calls.clear()
    kept.append(("1", 1), receipt_line(1, journal.LIMIT))
    kept.forget(("1", 1))
    kept.append(("2", 1), receipt_line(2, 100))
    second = path.stat().st_ino
    assert second != first
    around = [("sync", second), ("replace", second), ("folder", folder)]
    assert calls == (around if promised else [("replace", second)])
    assert [each.job for each in read_receipts(path)] == ["0", "2"]


def test_a_receipt_the_disk_does_not_take_leaves_the_journal_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "j.jsonl"
    kept = Journal(str(path))
    kept.append(("0", 1), receipt_line(0, 10))
    real = os.pwrite
    monkeypatch.setattr(
        os, "pwrite", lambda fd, data, offset: real(fd, data[:20], offset)
    )
    with pytest.raises(OSError, match="only a part"):
        kept.append(("1", 1), receipt_line(1, 10))
    monkeypatch.undo()
    kept.append(("2", 1), receipt_line(2, 10))
    assert [each.job for each in read_receipts(path)] == ["0", "2"]


def test_without_proc_the_group_stands_for_the_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tree, "HAS_PROC", False)
    child = subprocess.Popen(["sleep", "60"], start_new_session=True)
    order = SimpleNamespace(cgroup=None)
    job = cast(
        "Any", SimpleNamespace(pid=child.pid, start=0, order=order, ending="exit")
    )
    (group,) = kin.Kin([], {}, kin.Kept()).members(job)
    assert not kin.surely_gone(job, {}, 0, 0.0)
    assert tree.send(group, signal.SIGKILL)
    child.wait()
    assert kin.Kin([], {}, kin.Kept()).members(job) == []
    assert kin.surely_gone(job, {}, 0, 0.0)


def test_a_child_is_known_until_it_is_reaped_and_nobody_else_is_one() -> None:
    reader, writer = os.pipe()
    child = subprocess.Popen(
        ["sh", "-c", 'sleep 60 & echo "$!"; read -r _; kill "$!"'],
        stdin=reader,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    grandchild = int(child.stdout.readline())
    assert tree.is_child(child.pid)
    assert not tree.is_child(grandchild)
    assert not tree.is_child(os.getpid())
    os.close(writer)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert tree.is_child(child.pid), "defunct, and still ours"
    assert child.wait() == 0
    assert not tree.is_child(child.pid)
    os.close(reader)
    child.stdout.close()


def test_a_process_that_took_the_pid_of_another_is_not_signalled() -> None:
    child = subprocess.Popen(["sleep", "60"])
    process = tree.read_process(child.pid)
    assert process is not None
    assert not tree.send(process._replace(start=process.start - 1), signal.SIGKILL)
    assert child.poll() is None
    assert tree.send(process, signal.SIGKILL)
    assert child.wait() == -signal.SIGKILL
    assert not tree.send(process, signal.SIGKILL)


def test_a_program_whose_first_thread_ended_counts_as_alive() -> None:
    program = (
        "import ctypes, os, threading;"
        "threading.Thread(target=lambda: os.read(0, 1)).start();"
        "os.write(1, b'x');"
        "ctypes.CDLL(None).syscall(60, 0)"  # exit of this thread alone, on x86-64
    )
    if os.uname().machine != "x86_64":
        pytest.skip("the number of the system call is that of x86-64")
    child = subprocess.Popen(
        ["python3", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout is not None
        assert child.stdin is not None
        child.stdout.read(1)
        while b"\nState:\tZ" not in Path(f"/proc/{child.pid}/status").read_bytes():
            os.sched_yield()
        process = tree.read_process(child.pid)
        assert process is not None
        assert not process.defunct
        child.stdin.close()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        process = tree.read_process(child.pid)
        assert process is not None
        assert process.defunct


@pytest.mark.parametrize("odd", ["plain", "\u00e9\u4e2d", os.fsdecode(b"\xff\xfe")])
def test_an_order_means_the_same_however_it_is_encoded(
    tmp_path: Path, odd: str
) -> None:
    wanted = order(tmp_path, "echo", odd, secrets={"TOKEN": odd}, env={"ODD": odd})
    line = wire.start_line(wanted)
    assert line.isascii() == (odd == "plain")
    sent = json.loads(line)
    typed = json.loads(wire.encode(wire.start(wanted)))
    assert {name: sent[name] for name in typed} == typed
