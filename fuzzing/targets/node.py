"""What the service and its node agent say to each other, and what they write down."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt, Secrets
from forge_actors.edges.cleanup import wire as cleaning
from forge_actors.edges.node import wire
from forge_actors.edges.node.agent.child import SpawnFailed
from forge_actors.edges.node.agent.desk import Desk, Unwelcome
from forge_actors.edges.node.agent.limits import decode as limits_of
from forge_actors.edges.node.agent.lines import message_of
from forge_actors.edges.node.agent.listener import NAME
from forge_actors.edges.node.agent.order import Malformed, Order
from forge_actors.edges.node.finding import read_card
from forge_actors.edges.node.journals import Record, read_journal
from fuzzing.place import file_of, folder
from fuzzing.target import Broken, Refusing, Target, argument_of, same

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.tree import Mark

#: What the desk says that it raises for a message that nobody can obey; the agent tells
#: the service and goes on.
_obeyed = Refusing(Malformed, KeyError, TypeError, ValueError, RecursionError)
#: Both are what one who reads lines of theirs looks for.
_read = Refusing(msgspec.DecodeError, RecursionError)


class _Hands:
    """Starts nothing; what would be done is as good as done."""

    def __init__(self) -> None:
        self.said: list[bytes] = []

    def begin(self, key: Mark, message: dict[str, Any]) -> Order:
        return Order(message, {})

    def repeat_start(self, job: Order) -> None: ...

    def stop(self, job: Order, grace: float | None, ending: str) -> None: ...

    def end(self, job: Order) -> None: ...

    def suspend(self, job: Order, *, pause: bool) -> None: ...

    def watch(self, job: Order, known: int) -> None: ...

    def identity(self, job: Order) -> dict[str, Any]:
        return {"boot_id": "b", "pid": 1, "start_ticks": 2}

    def say(self, line: bytes) -> None:
        self.said.append(line)

    def now(self) -> float:
        return 1.0


class _Book:
    """Keeps the lines, which must be lines."""

    def append(self, key: Mark, line: bytes) -> None:
        if b"\n" in line:
            raise Broken(f"{line!r} is no line")
        json.loads(line)

    def forget(self, key: Mark) -> None: ...

    def sync(self) -> None: ...


def desk(data: bytes) -> None:
    hands = _Hands()
    desk: Desk[Order] = Desk(hands, _Book(), {"instance": "i", "boot_id": "b"})
    for line in data.split(b"\n")[:20]:
        message = _obeyed(message_of, line)
        if message is None:
            continue
        try:
            for told in desk.greet(message):
                json.loads(told)
        except (Malformed, Unwelcome, AttributeError):
            pass
        _obeyed(desk.obey, message)
        _obeyed(_take, message)
    for key in list(desk.jobs):
        desk.ended(key, {"job": key[0], "attempt": key[1], "ending": "exit"})
    if desk.jobs:
        raise Broken(f"{desk.jobs} never end")
    for said in hands.said:
        if b"\n" in said:
            raise Broken(f"{said!r} is no line")
        json.loads(said)


def _take(message: dict[str, Any]) -> None:
    """Whatever is in an order is taken or malformed."""
    try:
        Order(message, {})
    except SpawnFailed:
        return
    finally:
        limits = message.get("limits") if isinstance(message, dict) else None
        if isinstance(limits, dict):
            limits_of(limits)


def orders(data: bytes) -> None:
    """What is told of an order is what the agent understands."""
    text = argument_of(data.replace(b"\0", b""))
    words = text.split("\n")
    env = {word: word[::-1] for word in words if word}
    order = LaunchOrder(
        *("a1", "r1", 1, 2, tuple(words), words[0], env, None, "/l", 100, None, 1.5),
        *("SIGTERM", 2.0, False),
        secrets=Secrets({"S": words[-1]}),
    )
    taken = Order(message_of(wire.start_line(order)), {})
    told = [word.encode("utf-8", "surrogateescape") for word in words]
    same(taken.argv, told, "the arguments")
    same(taken.cwd, told[0], "the folder")
    wanted = {w.encode("utf-8", "surrogateescape"): v for w, v in env.items()}
    same(
        {name: value for name, value in taken.env.items() if name != b"S"},
        {
            n: v.encode("utf-8", "surrogateescape")
            for n, v in wanted.items()
            if n != b"S"
        },
        "the environment",
    )
    same(taken.env[b"S"], told[-1], "the secret")


def events(data: bytes) -> None:
    found = _read(wire.decode_lines, data)
    if found is not None:
        lines = b"\n".join(map(wire.encode, found))
        same(wire.decode_lines(lines), found, "told again")


def journals(data: bytes) -> None:
    written = read_journal(file_of("agent.jsonl", data))
    lines = [msgspec.json.encode(entry) for entry in written.entries.values()]
    again = read_journal(file_of("agent.jsonl", b"\n".join([*lines, b""])))
    same(again.entries, written.entries, "written and read again")
    same(again.whole, True, "what was written")
    file_of(NAME, data)
    read_card(folder())


def cleaners(data: bytes) -> None:
    for decode in (cleaning.decode_said, cleaning.decode_heard):
        found = _read(decode, data)
        if found is not None:
            same(decode(cleaning.encode(found)), found, "said again")
    _order(data)


def _order(data: bytes) -> None:
    order = Refusing(msgspec.DecodeError, UnicodeEncodeError, RecursionError)(
        cleaning.decode_order, data
    )
    if order is not None:
        line = cleaning.encode_order(order)
        same(cleaning.decode_order(line), order, "ordered again")


_START = wire.start_line(
    LaunchOrder(
        *("a1", "r1", 1, 2, ("make", "\udcff"), "/x", {"A": "b"}, None, "/l", 100),
        *(None, None, "SIGTERM", 2.0, False),
    )
)
_HELLO = wire.encode(wire.hello({"PATH": "/bin"}))
_RECEIPT = Receipt("a1", 1, 2, "exit", 3.0)
_IDENTITY = ProcessIdentity("b", 5, 6)
_DEEP = b'{"op":"start","x":' + b"[" * 2000 + b"\n"
_WORDS = (
    *(b'"op":"', b'"job":', b'"attempt":', b'"argv":[', b'"env":{', b"null", b"true"),
    *(b'"stop"', b'"watch"', b'"pause"', b'"lasting":', b'"grace":', b'"nth":', b"\n"),
)

TARGETS = (
    Target(
        "node-desk",
        "no message harms the node agent, and all that it says and writes is one line",
        desk,
        (
            b"\n".join([_HELLO, _START, _START, b'{"op":"ping"}']),
            b'{"op":"stop","job":"a1","attempt":1,"grace":null,"ending":"stop"}',
            _START + b'\n{"op":"watch","job":"a1","attempt":1,"known":0}\n'
            b'{"op":"pause","job":"a1","attempt":1}\n{"op":"quit"}',
            b'{"op":"forget","attempts":[["a1",1],[[],{}]]}\n[]\n1\n"op"\n\xff',
            _DEEP,
            b'{"op":"start","job":"\\ud800\\n","attempt":1e999}',
        ),
        _WORDS,
    ),
    Target(
        "node-orders",
        "an order reaches the agent byte for byte",
        orders,
        (b"make\nall", b"\xff\xc3\xa9\nx\n", "\u00e9\n\U0001f600".encode()),
        (b"\n", b"\xff", b"\xc2\x80"),
    ),
    Target(
        "node-events",
        "what the agent tells is read as it is told, or refused",
        events,
        (
            wire.encode(wire.Exited(_RECEIPT)) + b"\n" + wire.encode(wire.Pong()),
            wire.encode(
                wire.Ready("i", "b", 1, [], [wire.Known("a", 1, 2, _IDENTITY)], 0)
            ),
            b'{"event":"pong","x":' + b"[" * 2000,
        ),
        (b'"event":"', b'"exited"', b'"receipt":', b'"started"', b'"ready"'),
    ),
    Target(
        "journals",
        "what agents wrote down is read again, whatever else stands there",
        journals,
        (
            msgspec.json.encode(_RECEIPT)
            + b"\n"
            + msgspec.json.encode(Record("started", "a1", 1, 2, "i", "r", _IDENTITY))
            + b"\n",
            b'{"record":"held","job":"a","attempt":1,"fence":1}\nnonsense\n{"rec',
            b'{"x":' + b"[" * 2000 + b"\n",
            b'{"record":"held","x":' + b"[" * 2000 + b"\n",
            b"{}\xff\n",
        ),
        (b'{"record":"', b'"job":"', b'"ending":"', b"\n"),
    ),
    Target(
        "cleaners",
        "the clean-up program and its owner take from each other what they say",
        cleaners,
        (
            *(b'{"op":"visiting","clean_class":"logs"}', b'{"op":"done"}'),
            b'{"op":"told","removals":[],"skips":[]}',
            b'{"op":"answer","jobs":["a"],"count":1,"cursor":"x"}',
            b'{"op":"done","error":"' + b"x" * 30 + b'","y":1}',
            b'{"request":{"home":"/h"},"now":1}',
        ),
        (b'"op":"', b'"jobs":[', b'"report":', b'"worktree":'),
    ),
)
