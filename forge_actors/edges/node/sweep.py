"""Ending what belongs to attempts that no agent looks after any more.

Five things prove that a process belongs to an attempt: it is its leader, it carries its
mark, it is in its cgroup, it is in the leader's session, or it descends from such a
process. What is in the cgroup of a dead agent and carries no mark at all may be of any
of its attempts, so it is ended with each of them that is lost. A group is part of one
session, so that says all that the group could. What proves nothing gets no signal: a
number that was given to another process since, a process of another boot or of another
pid namespace.
"""

from __future__ import annotations

import os
import signal
from types import MappingProxyType
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.node.agent import cgroup, tree
from forge_actors.edges.node.agent.tree import Process, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from collections.abc import Set as AbstractSet

    from forge_actors.edges.node.attempt import Key

#: Seconds to end what was found. Only a process stuck in the kernel needs more.
SWEEP_LIMIT = 10.0
#: Seconds to the next look, doubled up to the last.
_FIRST_PAUSE, _LAST_PAUSE = 0.005, 0.25
#: Looks in a row that must find nothing: between its fork and its exec a process still
#: shows the environment of its parent, and one look can miss it.
_CALM_LOOKS = 2
#: The same for looks during which processes were started and ended all the time, so
#: that each of them can miss one.
_RESTLESS_LOOKS = 8
_NO_AGENTS: Mapping[Key, str] = MappingProxyType({})


async def sweep(
    lost: Mapping[Key, ProcessIdentity | None],
    agents: Mapping[Key, str] = _NO_AGENTS,
    lasting: AbstractSet[Key] = frozenset(),
) -> dict[Key, tuple[ProcessIdentity, ...]]:
    """Kill what belongs to these attempts, until nothing is found.

    An attempt without an identity is one whose start was not told. `agents` names the
    instance of the agent that began it, where that is known. The answer names,
    for every attempt, what could not be proven gone: what the kernel holds or this user
    may not end, what may be a stranger, what is in another namespace or out of sight.

    Of one that is `lasting` nothing is ended before its leader has, but all is named.
    """
    hunt = _Hunt(lost, agents, lasting)
    pause = _FIRST_PAUSE
    with trio.move_on_after(SWEEP_LIMIT):
        while not hunt.over:
            found = await trio.to_thread.run_sync(hunt.look)
            await trio.sleep(pause)
            pause = min(pause * 2, _LAST_PAUSE) if found else _FIRST_PAUSE
    await trio.to_thread.run_sync(hunt.tidy)
    return hunt.remaining()


def still_alive(
    identities: Iterable[ProcessIdentity],
) -> tuple[ProcessIdentity, ...]:
    """Those of the processes that are not proven gone. A defunct one is gone."""
    boot, namespace = tree.boot_id(), tree.pid_namespace()
    return tuple(
        identity
        for identity in identities
        if identity.boot_id == boot and _may_live(identity, namespace)
    )


def _may_live(identity: ProcessIdentity, namespace: int) -> bool:
    if not tree.HAS_PROC:
        return tree.group_exists(identity.pid)
    if not _is_foreign(identity, namespace):
        return tree.lives(identity.pid, identity.start_ticks)
    if namespace != tree.FIRST_NAMESPACE:
        return True
    found = filter(None, map(tree.read_process, tree.all_pids()))
    return any(_is_below(process, identity) for process in found)


def _is_foreign(identity: ProcessIdentity, namespace: int) -> bool:
    """Whether its pid is a number of another pid namespace."""
    return identity.namespace not in (0, namespace)


def _is_below(process: Process, identity: ProcessIdentity) -> bool:
    """Whether it has the identity, in a namespace below ours."""
    return (
        process.start == identity.start_ticks
        and not process.defunct
        and identity.pid in tree.nested_pids(process.pid)
    )


class _Session:
    """What a session's number says of the processes in it now.

    It is not given out again while one process is in the session. So it proves
    something from a look that shows its leader, or somebody with the mark, up to the
    first look that shows nobody.
    """

    def __init__(self, number: int, start: int) -> None:
        self._number = number
        self._start = start
        self._proven = False
        self._over = False

    def sort(
        self, snapshot: Snapshot, marked: Iterable[Process]
    ) -> tuple[list[Process], list[Process]]:
        """The processes that belong to the session, and those that only may."""
        holder = snapshot.processes.get(self._number)
        members = [
            process
            for process in snapshot.processes.values()
            if self._number in (process.session, process.pid)
        ]
        if not members or (holder is not None and holder.start != self._start):
            self._over = True
        if self._over:
            return [], []
        if holder is not None or any(p.session == self._number for p in marked):
            self._proven = True
        members = [process for process in members if process.start >= self._start]
        return (members, []) if self._proven else ([], members)


class _Lost:
    """One attempt, and what the last look found of it.

    A foreign one ran in another pid namespace: what is found of it gets no signal.
    """

    def __init__(self, leader: ProcessIdentity | None, *, foreign: bool) -> None:
        self.left: list[Process] = []
        self.foreign = leader if foreign else None
        self._sessions: dict[int, _Session] = {}
        if leader is not None and not foreign:
            self._sessions[leader.pid] = _Session(leader.pid, leader.start_ticks)

    def find(
        self, snapshot: Snapshot, marked: list[Process], own: int
    ) -> list[Process]:
        """What certainly belongs to it and is alive; `left` is that and what may."""
        if self.foreign is not None:
            everybody = snapshot.processes.values()
            marked = marked + [p for p in everybody if _is_below(p, self.foreign)]
        for process in marked:
            # A session of its own, which no stranger can have joined.
            if process.pid == process.session and process.pid not in self._sessions:
                self._sessions[process.pid] = _Session(process.pid, process.start)
        sure, unsure = list(marked), list[Process]()
        for session in self._sessions.values():
            members, perhaps = session.sort(snapshot, marked)
            sure += members
            unsure += perhaps
        found = snapshot.with_descendants(sure, without=own)
        self.left = found + [process for process in unsure if not process.defunct]
        return found


class _Hunt:
    """The attempts that can be looked for. Its looks are made one after the other."""

    def __init__(
        self,
        lost: Mapping[Key, ProcessIdentity | None],
        agents: Mapping[Key, str],
        lasting: AbstractSet[Key],
    ) -> None:
        #: The leaders of those that nothing is done to while these live. Where it is
        #: not known who that is, anybody is.
        self._leaders = {key: lost[key] for key in lasting}
        self._boot, self._namespace = tree.boot_id(), tree.pid_namespace()
        self._own = os.getpid()
        self._lost: dict[Key, _Lost] = {}
        #: Those that somebody was found in, by their folders.
        self._cgroups: dict[Key, dict[str, cgroup.Cgroup]] = {key: {} for key in lost}
        #: What is marked in this look, and how much of the proof is there that nothing
        #: is left.
        self._marked: dict[Key, list[Process]] = {}
        self._calm = 0.0
        #: What is known without a look.
        self._out_of_sight: dict[Key, tuple[ProcessIdentity, ...]] = {}
        #: What this user may not end, by pid and start.
        self._refused: set[tuple[int, int]] = set()
        for key, leader in lost.items():
            if self._can_see(leader):
                foreign = leader is not None and _is_foreign(leader, self._namespace)
                self._lost[key] = _Lost(leader, foreign=foreign)
            else:
                self._out_of_sight[key] = still_alive([leader] if leader else [])
        #: The lost attempts of each agent whose cgroup tells something. One that we
        #: were started in holds what is ours as well.
        self._agents: dict[str, list[Key]] = {}
        ours = {inside.instance for inside in cgroup.of_process(self._own)}
        for key in self._lost:
            if agents.get(key, "") not in ours | {""}:
                self._agents.setdefault(agents[key], []).append(key)
        #: The folders of those in which somebody was found.
        self._abandoned: set[str] = set()

    def _can_see(self, leader: ProcessIdentity | None) -> bool:
        if leader is None or not tree.HAS_PROC:
            return tree.HAS_PROC
        return leader.boot_id == self._boot and (
            not _is_foreign(leader, self._namespace)
            or self._namespace == tree.FIRST_NAMESPACE
        )

    @property
    def over(self) -> bool:
        """Whether another look would find nothing."""
        return not self._lost or self._calm >= 1.0

    def look(self) -> bool:
        """Kill what is there now. Whether some of it may have to be killed again."""
        self._marked = {key: [] for key in self._lost}
        snapshot = Snapshot(self._seen)
        busy = False
        found = {
            key: lost.find(snapshot, self._marked[key], self._own)
            for key, lost in self._lost.items()
        }
        spared = {
            key for key in self._leaders if self._goes_on(key, found.get(key, []))
        }
        untouched = {process for key in spared for process in found.get(key, [])}
        for key in self._lost.keys() - spared:
            if self._lost[key].foreign is None:
                for group in self._cgroups[key].values():
                    group.kill()
                # A job that one that lasts has begun may look as if it were of both.
                killed = [self._kill(p) for p in found[key] if p not in untouched]
                busy = any(killed) or busy
        looks = _CALM_LOOKS if snapshot.steady else _RESTLESS_LOOKS
        self._calm = 0.0 if busy else self._calm + 1 / looks
        return busy

    def _goes_on(self, key: Key, found: list[Process]) -> bool:
        leader = self._leaders[key]
        if leader is None:
            return bool(found)
        named = (leader.pid, leader.start_ticks)
        return any((process.pid, process.start) == named for process in found)

    def _seen(self, process: Process) -> None:
        """Sort it by its mark and by the cgroup it is in."""
        if process.pid == self._own or process.defunct:
            return
        mark = tree.mark_of(process.pid)
        if mark in self._lost and mark is not None:
            self._marked[mark].append(process)
        contained = cgroup.of_process(process.pid)
        for number, inside in enumerate(contained):
            if inside.key is None:
                keys = self._agents.get(inside.instance, [])
                # Also not in that of an agent, alive, which a job has started.
                if keys and not mark and all(map(self._is_dead, contained[number:])):
                    # It may be of one that lasts, so it ends with that.
                    for key in [each for each in keys if each in self._leaders] or keys:
                        self._marked[key].append(process)
            elif inside.key in self._lost:
                folder = inside.folder()
                self._marked[inside.key].append(process)
                if folder is not None:
                    self._cgroups[inside.key][folder] = cgroup.Cgroup(folder)

    def _is_dead(self, inside: cgroup.Inside) -> bool:
        folder = inside.agent_folder()
        if folder is None or not cgroup.is_abandoned(folder):
            return False
        self._abandoned.add(folder)
        return True

    def _kill(self, process: Process) -> bool:
        """False where another try would be in vain."""
        if (process.pid, process.start) in self._refused:
            return False
        try:
            tree.send(process, signal.SIGKILL)
        except PermissionError:
            self._refused.add((process.pid, process.start))
            return False
        return True

    def tidy(self) -> None:
        """Remove the cgroups that are empty now, also those far from where we are."""
        for folder in self._abandoned:
            cgroup.remove_abandoned(folder)
        cgroup.remove_stale()

    def remaining(self) -> dict[Key, tuple[ProcessIdentity, ...]]:
        found = {
            key: tuple(
                ProcessIdentity(self._boot, process.pid, process.start, self._namespace)
                for process in lost.left
                if tree.lives(process.pid, process.start)
            )
            for key, lost in self._lost.items()
        }
        return found | self._out_of_sight
