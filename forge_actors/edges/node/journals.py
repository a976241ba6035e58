"""What agents wrote down, read back; and kept for as long as it is needed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec
from msgspec import Struct

from forge_actors.domain.launch import ProcessIdentity, Receipt

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from forge_actors.edges.node.attempt import Key

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


class Written(NamedTuple):
    """The last line of each attempt; `whole` unless some of them cannot be read."""

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
        except msgspec.DecodeError:
            whole = False
            continue
        entries[entry.job, entry.attempt] = entry
    return Written(entries, whole)


def journals(home: Path) -> list[Path]:
    """The files of all agents of this home, the oldest first."""
    return sorted((home / "receipts").glob("*.jsonl"))


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
