"""Isolating: from an order that wants a worktree to one that can be launched in it.

Files of earlier jobs are put in their places before that.

What is known of the worktree is saved before its folder is begun and when it is ready,
so whoever owns the job next can go on from there.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import Struct, structs

from forge_actors.domain.admissions import NotAdmitted
from forge_actors.domain.changes import Noted, WorktreeChanged
from forge_actors.domain.errors import ForgeError, Unavailable, WorktreeFailed
from forge_actors.domain.events import Event
from forge_actors.domain.inputs import InputsMissing
from forge_actors.domain.isolation import checkout_claims
from forge_actors.domain.launch import Secrets
from forge_actors.domain.worktrees import GIT_PLACES, Worktree

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.admissions import Admissions, Admitted
    from forge_actors.domain.inputs import Inputs, InputsWanted
    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.ports import Clock, Locks, Saved, Store, Worktrees
    from forge_actors.domain.worktrees import MadeWorktree, WorktreeWanted

#: What can be done about a job that can have no worktree.
OTHERWISE = "; submit it with --no-isolate to run it in the checkout, one at a time"
IN_CHECKOUT = "; it waits for the checkout instead"
#: Seconds in which what was begun of a worktree is to be taken back.
UNDO_SECONDS = 20.0


class Isolating(Struct, frozen=True):
    """What workers make worktrees with, and look after what is left in checkouts."""

    store: Store
    worktrees: Worktrees
    clock: Clock
    locks: Locks | None = None
    inputs: Inputs | None = None
    admissions: Admissions | None = None

    def look_after(self, repo: str, receipt: Receipt) -> None:
        """Have the locks removed that a job left which did not end well.

        It holds its claims until that is done, so no other job works there.
        """
        began = receipt.started_at
        well = receipt.ending == "exit" and receipt.exit_code == 0
        if self.locks is None or well or began is None or not receipt.complete:
            return
        with suppress(Exception):  # whatever is wrong with it, its exit is to be told
            spec = self.store.spec(receipt.job)
            if spec.isolation is not None:
                return  # its next attempt looks at its own
            left = self.locks.remove_left(spec.cwd, began, receipt.ended_at)
            told = [("lock_removed", {"path": path}) for path in left.removed]
            told += [
                ("lock_kept", {"path": path, "reason": why}) for path, why in left.kept
            ]
            self._note(repo, receipt.job, told)

    def _note(
        self, repo: str, job: str, told: Sequence[tuple[str, Mapping[str, object]]]
    ) -> None:
        now = self.clock.now()
        for kind, data in told:
            event = Event(kind, now, repo, job, dict(data))
            self.store.save([Noted(event)], lazy=True)

    async def prepare(self, order: LaunchOrder) -> LaunchOrder:
        """The order of a job in its worktree, which is ready; or why there is none.

        Cancelled, it leaves what it has begun: `give_up` takes that back.
        """
        if order.inputs is not None:
            order = await self._with_inputs(order, order.inputs)
        if order.wanted is None:
            return order
        try:
            return await self._prepare(order, order.wanted)
        except (WorktreeFailed, Unavailable) as error:
            why = str(error)
            await self.give_up(order, why)
            known = self.store.worktree(order.wanted.job)
            there = known is not None and known.state in ("ready", "removing")
            back = False
            if order.wanted.job == order.job and not there:
                back = checkout_claims(self.store.spec(order.job)) is not None
                why += IN_CHECKOUT if back else OTHERWISE
            return structs.replace(order, wanted=None, problem=why, no_worktree=back)

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        """Whether one that has to be admitted is; what fails on the way is why not."""
        if self.admissions is None:
            return NotAdmitted("nobody here can admit it")
        try:
            return await self.admissions.admit(order)
        except ForgeError as error:
            return NotAdmitted(str(error))

    async def give_up(self, order: LaunchOrder, why: str) -> None:
        """The attempt does not begin: leave no inputs of it, and nothing of a worktree
        that is not ready."""
        if order.inputs is not None and self.inputs is not None:
            with trio.CancelScope(shield=True):
                await self.inputs.remove(order.inputs.folder)
        wanted = order.wanted
        if wanted is not None and wanted.job != order.job:
            return  # it is another job's, and was ready before
        known = None if wanted is None else self.store.worktree(wanted.job)
        if wanted is None or known is None or known.state != "making":
            return
        with trio.CancelScope(shield=True) as scope:
            scope.deadline = trio.current_time() + UNDO_SECONDS
            try:
                await self.worktrees.undo(wanted, known)
            except (WorktreeFailed, Unavailable) as error:
                # Its record stays, so that somebody can look after what is left.
                why = f"{why}; what was begun of it is still there: {error}"
                failed = structs.replace(known, reason=why)
            else:
                failed = structs.replace(
                    known, state="removed", reason=why, removed_at=self.clock.wall()
                )
            self._save(failed, "worktree_failed", {"reason": why})

    async def _with_inputs(
        self, order: LaunchOrder, wanted: InputsWanted
    ) -> LaunchOrder:
        try:
            if self.inputs is None:
                raise InputsMissing("no inputs can be placed here")
            await self.inputs.place(wanted)
        except InputsMissing as error:
            return structs.replace(
                order, wanted=None, problem=str(error), problem_code=error.code
            )
        return structs.replace(order, inputs=structs.replace(wanted, placed=True))

    async def _prepare(self, order: LaunchOrder, wanted: WorktreeWanted) -> LaunchOrder:
        known = self.store.worktree(wanted.job)
        if wanted.job != order.job and (known is None or known.state != "ready"):
            raise WorktreeFailed(
                f"the worktree of job {wanted.job}, in which it is to go on, is not"
                f" there any more: forge-actors worktree restore {wanted.job} makes it"
                " again, then retry this job"
            )
        if known is not None and known.state == "removing":
            raise WorktreeFailed("its worktree is being removed; a retry has a new one")
        if known is not None and known.state == "ready":
            made = await self.worktrees.enter(wanted, known)
            told = [("lock_removed", {"path": path}) for path in made.unlocked]
            self._note(wanted.repo, order.job, told)
            return _placed(order, wanted, made)
        if known is None or known.state == "removed":
            known = await self._begin(wanted)
        made = await self.worktrees.make(wanted, known)
        about: dict[str, object] = {}
        if made.unlocked:
            about["unlocked"] = made.unlocked
        if made.set_aside is not None:
            about["set_aside"] = made.set_aside
        ready = structs.replace(known, state="ready", reason=None)
        await self._save(ready, "worktree_made", about).wait()
        return _placed(order, wanted, made)

    async def _begin(self, wanted: WorktreeWanted) -> Worktree:
        plan = await self.worktrees.plan(wanted)
        known = Worktree(
            wanted.job,
            wanted.repo,
            wanted.path,
            plan.branch,
            self.clock.wall(),
            base=wanted.base,
            base_commit=plan.base_commit,
        )
        await self._save(known, "worktree_making", {}).wait()
        return known

    def _save(self, known: Worktree, kind: str, told: dict[str, object]) -> Saved:
        data = {"path": known.path, "branch": known.branch, **told}
        if known.base is not None:
            data["base"] = known.base
        if known.base_commit is not None:
            data["base_commit"] = known.base_commit
        event = Event(kind, self.clock.now(), known.repo, known.id, data)
        return self.store.save([WorktreeChanged(known, event)])


def _placed(
    order: LaunchOrder, wanted: WorktreeWanted, made: MadeWorktree
) -> LaunchOrder:
    """The order for a job in its worktree, which git cannot leave by itself."""
    env = {name: text for name, text in order.env.items() if name not in GIT_PLACES}
    env["GIT_CEILING_DIRECTORIES"] = wanted.ceiling
    secrets = order.secrets
    if not GIT_PLACES.isdisjoint(secrets):
        kept = {name: text for name, text in secrets.items() if name not in GIT_PLACES}
        secrets = Secrets(kept)
    return structs.replace(
        order,
        wanted=None,
        cwd=made.cwd,
        env=env,
        secrets=secrets,
        worktree=made.place,
    )
