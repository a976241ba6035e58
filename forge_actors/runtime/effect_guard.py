"""The guard of effects: what a job that is held back finds, and is kept from."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from forge_actors.domain.effects import (
    EFFECTS,
    MAX_REFUSED,
    Effect,
    RefusedEffect,
    allowed,
)
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.redaction import bounded
from forge_actors.edges.guard.wrappers import Wrappers, environment, read_refused
from forge_actors.runtime.homes import GUARD

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity, Receipt
    from forge_actors.domain.ports import RunningAttempt

#: Characters of a command that was refused.
MAX_COMMAND = 100


class EffectSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """Which jobs find wrappers of git and gh: those that no person began, all of them,
    each for what it does not declare, or none."""

    wrappers: Literal["automated", "all", "none"] = "automated"


class EffectGuard:
    """Puts wrappers before the programs of a job. One for each runtime."""

    def __init__(self, home: Path, settings: Callable[[], EffectSettings]) -> None:
        self._settings = settings
        self._wrappers = Wrappers(os.path.abspath(home / GUARD))

    def __call__(self, order: LaunchOrder, spec: JobSpec) -> LaunchOrder:
        """The order, for what the job may do; or with why it cannot be guarded."""
        which = self._settings().wrappers
        authority = spec.authority
        if which == "none" or (authority is None and which == "automated"):
            return order
        may = allowed(authority, order.job)
        if may is None:
            if which == "automated":
                return order
            may = () if authority is None else authority.declared
        try:
            folder = self._wrappers.folder(may)
        except StoreFailed as error:
            return structs.replace(order, problem=str(error))
        found = os.environ.get("PATH", os.defpath)
        added = environment(folder, order.env, found, may_push="push" in may)
        return structs.replace(order, env={**order.env, **added}, guarded=True)


class GuardedAttempt:
    """An attempt with wrappers; implements `domain.ports.RunningAttempt`."""

    def __init__(self, running: RunningAttempt, log: str) -> None:
        self._running = running
        self._log = log
        self._receipt: Receipt | None = None

    @property
    def receipt(self) -> Receipt | None:
        return self._receipt or self._running.receipt

    async def started(self) -> ProcessIdentity | None:
        return await self._running.started()

    def once_settled(self, notify: Callable[[], object]) -> bool:
        return False  # more is to be done by the time it has ended

    async def exited(self) -> Receipt:
        """Its receipt, with what it was kept from."""
        if self._receipt is None:
            receipt = await self._running.exited()
            self._receipt = structs.replace(receipt, refused=refused(self._log))
        return self._receipt

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        self._running.stop(grace=grace, ending=ending)

    def pause(self) -> None:
        self._running.pause()

    def resume(self) -> None:
        self._running.resume()


def refused(log: str) -> tuple[RefusedEffect, ...]:
    """What wrappers refused, each once; a job could have written anything there."""
    known: dict[str, Effect] = {effect: effect for effect in EFFECTS}
    told = [
        RefusedEffect(known[effect], bounded(command, MAX_COMMAND))
        for effect, command in read_refused(log)
        if effect in known and command.isprintable()
    ]
    return tuple(dict.fromkeys(told))[:MAX_REFUSED]
