"""What became of attempts whose agent is gone, or that an earlier service launched."""

from __future__ import annotations

import os
from time import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

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


#: Whether one can wait for the end of a process that is nobody's child here.
CAN_WATCH = hasattr(os, "pidfd_open")


class Known(Protocol):
    """What a service knows of an attempt by itself."""

    @property
    def fence(self) -> int: ...

    @property
    def identity(self) -> ProcessIdentity | None: ...


class GoingOn(NamedTuple):
    """An attempt that lasts and outlived its agent: what that wrote down of it last."""

    record: Record
    identity: ProcessIdentity
    #: The name of that agent.
    agent: str


class Found(NamedTuple):
    """What became of attempts whose agent is gone: receipts, and who goes on."""

    receipts: dict[Key, Receipt]
    going_on: dict[Key, GoingOn]


async def find_ended(
    home: Path,
    living: Path,
    reserved: Mapping[Key, ProcessIdentity | None],
    archive: Archive,
    same_boot: bool,
) -> Found:
    """What became of the attempts of which the living agent knows nothing.

    One that is not here certainly never began: no journal mentions it, and none
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
    found = await settle(began, written, agents)
    keys = found.receipts.keys() | found.going_on.keys()
    if write_doubts(home, keys - entries.keys(), archive):
        for path, each in read:
            archive.keep(path, keys & each.entries.keys())
    return found


async def bury(
    unsettled: list[Attempt], journal: Path, *, last: bool
) -> tuple[set[Key], dict[Key, GoingOn]]:
    """Give the attempts of a dead agent their receipts; what it wrote down of any, and
    which go on without it.

    One that never began has no receipt yet if there will be another agent to begin it.
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
    found = await settle(began, written, agents)
    for key, receipt in found.receipts.items():
        began[key].settle_end(receipt)
    return set(written.entries), found.going_on


async def settle(
    attempts: Mapping[Key, Known], written: Written, agents: Mapping[Key, str]
) -> Found:
    """What became of attempts that may have begun, and whose agent is gone.

    What is left of those without one is ended. Of some only what they left behind was
    lost, or the command after the job. `agents` names the agent of each, where that
    is known.
    """
    receipts: dict[Key, Receipt] = {}
    lost: dict[Key, ProcessIdentity | None] = {}
    lasting: dict[Key, Record] = {}
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
            if entry is not None and entry.lasting is not None:
                lasting[key] = entry
    going_on: dict[Key, GoingOn] = {}
    if not lost:
        return Found(receipts, going_on)
    for key, left in (await sweep(lost, agents, lasting.keys())).items():
        receipt, leader = receipts.get(key), lost[key]
        if key in lasting and leader in left and CAN_WATCH:
            going_on[key] = GoingOn(lasting[key], leader, agents.get(key, ""))
            continue
        if receipt is None:
            receipt = _lost(key, attempts[key], written.entries.get(key), lost[key])
            what = "not all of it could be ended" if left else "what it ran was ended"
            if left and key in lasting:
                what = "what it ran goes on until it ends by itself"
            error = f"the node agent ended unexpectedly; {what}"
            receipt = replace(receipt, error=error)
        receipts[key] = replace(receipt, unfinished=False, remaining=left)
    return Found(receipts, going_on)


async def ended_alone(attempt: Attempt, known: GoingOn) -> Receipt:
    """The receipt of one that went on, and whose first process has ended by now; what
    it left is ended. Where nobody could wait for that, what runs is named instead."""
    key = attempt.key
    agents = {key: known.agent} if known.agent else {}
    left = (await sweep({key: known.identity}, agents, {key}))[key]
    receipt = _lost(key, attempt, known.record, known.identity)
    error = "its node agent had ended before it, so nobody knows how it exited"
    return replace(receipt, error=error, remaining=left)


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


def not_by(attempt: Attempt, agent: int) -> Receipt:
    """The receipt of one that an agent of an earlier release cannot start."""
    why = (
        f"the node agent (pid {agent}) is of an earlier release, which cannot start"
        " such a job; it is replaced when all that it runs has ended and the service"
        " is started anew"
    )
    return replace(without_process(attempt, why), ending="spawn")


class _Reserved:
    """An attempt of which the store knows at most the process."""

    fence = 0

    def __init__(self, identity: ProcessIdentity | None) -> None:
        self.identity = identity
