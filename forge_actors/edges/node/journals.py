"""What agents wrote down, read back; and kept for as long as it is needed."""

from __future__ import annotations

import contextlib
import os
from time import time_ns
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from forge_actors.domain.launch import ProcessIdentity, Receipt
from forge_actors.edges.node.agent import tree

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet
    from pathlib import Path

    from forge_actors.edges.node.attempt import Key

#: Holds the id of a boot.
_BOOT = "boot"
_RECORD = b'{"record":'


class Record(Struct, frozen=True):
    """An attempt without a receipt. One that is `held` had not begun yet."""

    record: Literal["starting", "started", "held"]
    job: str
    attempt: int
    fence: int
    instance: str = ""
    release: str = ""
    identity: ProcessIdentity | None = None
    #: Of one that runs until it ends by itself, whoever is gone: the signal that asks
    #: it to, and how many of them there were.
    lasting: str | None = None
    stops: int = 0


class Written(NamedTuple):
    """The last word on each attempt; `whole` unless some of them cannot be read."""

    entries: dict[Key, Receipt | Record]
    whole: bool

    def may_have_begun(self, key: Key) -> bool:
        entry = self.entries.get(key)
        if entry is None:
            return not self.whole
        return not (isinstance(entry, Record) and entry.record == "held")


_decode_record = msgspec.json.Decoder(Record).decode
_decode_receipt = msgspec.json.Decoder(Receipt).decode


def read_journal(path: Path) -> Written:
    """What one agent wrote down.

    A last line that was cut off says nothing, and what it was to say did not happen:
    each is written before that.
    """
    try:
        lines = path.read_bytes().split(b"\n")
    except FileNotFoundError:
        # An agent deletes its own when all that it says is saved.
        return Written({}, whole=True)
    except OSError:
        return Written({}, whole=False)
    entries: dict[Key, Receipt | Record] = {}
    whole = True
    for line in lines[:-1]:
        entry: Receipt | Record
        try:
            if line.startswith(_RECORD):
                entry = _decode_record(line)
            else:
                entry = _decode_receipt(line)
        except (msgspec.DecodeError, RecursionError):
            whole = False
            continue
        key = (entry.job, entry.attempt)
        if isinstance(entry, Receipt) or not isinstance(entries.get(key), Receipt):
            entries[key] = entry
    return Written(entries, whole)


def add_stops(home: Path, agent: str, record: Record) -> None:
    """Write down, in the journal of an agent that is gone, how many stops there were.

    Where that cannot be, the next service may ask for more of them.
    """
    path = home / "receipts" / f"{agent}.jsonl"
    with contextlib.suppress(OSError):
        fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC)
        with open(fd, "ab") as file:
            file.write(msgspec.json.encode(record) + b"\n")


def journals(home: Path) -> list[Path]:
    """The files of all agents of this home, the oldest first."""
    return sorted((home / "receipts").glob("*.jsonl"))


def boot_of(home: Path) -> str | None:
    """The boot on which the journals of this home were last looked through."""
    try:
        return (home / "receipts" / _BOOT).read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return None


def write_doubts(home: Path, doubtful: AbstractSet[Key], archive: Archive) -> bool:
    """Write down the attempts that nothing mentions and that may have begun.

    Otherwise the next service, on the same boot then, would take it that they never
    did, if this one ends before it has saved what becomes of them. False where nothing
    can be written: all stays as it is, and the next one doubts as well.
    """
    folder, boot = home / "receipts", tree.boot_id()
    lines = [
        msgspec.json.encode(Record("starting", job, attempt, 0))
        for job, attempt in doubtful
    ]
    try:
        if lines:
            path = folder / f"{time_ns()}-doubtful.jsonl"
            _write(path, b"\n".join([*lines, b""]))
            archive.keep(path, doubtful)
        if boot_of(home) != boot:
            _write(folder / _BOOT, boot.encode())
    except OSError:
        return False
    return True


def _write(path: Path, data: bytes) -> None:
    """Whole or not at all, and for good."""
    draft = path.with_name(path.name + ".new")
    draft.unlink(missing_ok=True)
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(fd)
    draft.replace(path)


class Archive:
    """The journals of agents that are gone, until nothing in them is needed."""

    def __init__(self) -> None:
        #: Of each file, the attempts that are not forgotten.
        self.needed: dict[Path, set[Key]] = {}

    def keep(self, path: Path, needed: Iterable[Key]) -> None:
        """Delete it once all of these are forgotten."""
        self.needed[path] = set(needed)
        self._look_at(path)

    def forget(self, key: Key) -> None:
        for path, needed in list(self.needed.items()):
            if key in needed:
                needed.discard(key)
                self._look_at(path)

    def _look_at(self, path: Path) -> None:
        if not self.needed[path]:
            del self.needed[path]
            path.unlink(missing_ok=True)
            path.with_name(path.name + ".new").unlink(missing_ok=True)
