"""What became of attempts whose agent is gone, or that an earlier service launched."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from forge_actors.domain.launch import Receipt
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.journals import (
    Archive,
    Record,
    Written,
    boot_of,
    journals,
    read_journal,
    write_doubts,
)
from forge_actors.edges.node.sweep import sweep

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from forge_actors.domain.launch import ProcessIdentity
    from forge_actors.edges.node.attempt import Attempt, Key


class Known(Protocol):
    """What a service knows of an attempt by itself."""

    @property
    def fence(self) -> int: ...

    @property
    def identity(self) -> ProcessIdentity | None: ...


async def find_ended(
    home: Path,
    living: Path,
    reserved: Mapping[Key, ProcessIdentity | None],
    archive: Archive,
    same_boot: bool,
) -> dict[Key, Receipt]:
    """The receipts of the attempts, of which the living agent knows nothing.

    One without a receipt here certainly never began: no journal mentions it, and none
    can be lost, since the machine has not been started anew.
    """
    read = [(path, read_journal(path)) for path in journals(home) if path != living]
    entries: dict[Key, Receipt | Record] = {}
    agents: dict[Key, str] = {}
    for path, each in read:
        entries |= each.entries
        agents |= dict.fromkeys(each.entries, path.stem)
    same_boot = same_boot and boot_of(home) in (None, tree.boot_id())
    written = Written(entries, same_boot and all(each.whole for _, each in read))
    began = {
        key: _Reserved(identity)
        for key, identity in reserved.items()
        if written.may_have_begun(key)
    }
    receipts = await settle(began, written, agents)
    doubtful = receipts.keys() - entries.keys()
    if write_doubts(home, doubtful, archive):
        for path, each in read:
            archive.keep(path, receipts.keys() & each.entries.keys())
    return receipts


async def bury(unsettled: list[Attempt], journal: Path, *, last: bool) -> set[Key]:
    """Give the attempts of a dead agent their receipts; what it wrote down of any.

    One that never began has none yet if there will be another agent to begin it.
    """
    # It wrote down each attempt before it began, and each receipt before it told us:
    # some may be known only there.
    written = read_journal(journal)
    began: dict[Key, Attempt] = {}
    for attempt in unsettled:
        if written.may_have_begun(attempt.key):
            began[attempt.key] = attempt
        elif last or not attempt.may_begin:
            attempt.settle_end(without_process(attempt, "its node agent ended before"))
    agents = dict.fromkeys(began, journal.stem)
    for key, receipt in (await settle(began, written, agents)).items():
        began[key].settle_end(receipt)
    return set(written.entries)


async def settle(
    attempts: Mapping[Key, Known], written: Written, agents: Mapping[Key, str]
) -> dict[Key, Receipt]:
    """The receipts of attempts that may have begun, and whose agent is gone.

    What is left of those without one is ended. Of some only what they left behind was
    lost, or the command after the job. `agents` names the agent of each, where that
    is known.
    """
    receipts: dict[Key, Receipt] = {}
    lost: dict[Key, ProcessIdentity | None] = {}
    for key, attempt in attempts.items():
        entry = written.entries.get(key)
        if isinstance(entry, Receipt):
            receipts[key] = entry
            if not entry.complete:
                # Of a command after the job nobody was told the identity.
                lost[key] = entry.identity if entry.unfinished else None
        else:
            told = None if entry is None else entry.identity
            lost[key] = told or attempt.identity
    if not lost:
        return receipts
    for key, left in (await sweep(lost, agents)).items():
        receipt = receipts.get(key)
        if receipt is None:
            receipt = _lost(key, attempts[key], written.entries.get(key), lost[key])
            what = "not all of it could be ended" if left else "what it ran was ended"
            error = f"the node agent ended unexpectedly; {what}"
            receipt = replace(receipt, error=error)
        receipts[key] = replace(receipt, unfinished=False, remaining=left)
    return receipts


def _lost(
    key: Key,
    attempt: Known,
    entry: Receipt | Record | None,
    identity: ProcessIdentity | None,
) -> Receipt:
    return Receipt(
        *key,
        fence=attempt.fence if entry is None else entry.fence,
        ending="lost",
        ended_at=time(),
        identity=identity,
        instance="" if entry is None else entry.instance,
        release="" if entry is None else entry.release,
    )


def without_process(attempt: Attempt, why: str) -> Receipt:
    """The receipt of an attempt that never began and never will."""
    return Receipt(
        *attempt.key,
        fence=attempt.fence,
        ending="stop",
        ended_at=time(),
        error=why,
    )


class _Reserved:
    """An attempt of which the store knows at most the process."""

    fence = 0

    def __init__(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
