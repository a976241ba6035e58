"""What can be asked of the results of jobs: what they changed, and to apply it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs

from forge_actors.domain.errors import ForgeError, NotFound, Refused
from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.results import JobResult
from forge_actors.edges.git import changes
from forge_actors.edges.sqlite.rows import spec_from, worktree_from
from forge_actors.runtime.applying import Applying
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.control_output import OutputControl
from forge_actors.runtime.homes import PRESERVED

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.results import Applied, ApplyMode, DiffForm
    from forge_actors.domain.worktrees import Worktree

#: Looks at repositories that go on at once, so that readers do not take the machine.
LOOKS = 2
#: Bytes of the receipt of a worktree that was removed.
_MAX_RECEIPT = 4 << 20


class ResultControl(JobControl, OutputControl):
    """The part of the port `Control` that is about what jobs did."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        self._looks = trio.CapacityLimiter(LOOKS)

    async def result(self, selector: str) -> JobResult | None:
        view = await self.job(selector)
        worktree = self._worktree_of(view)
        if worktree is None or worktree.base_commit is None:
            return None
        known = JobResult(worktree.branch, worktree.base_commit)
        try:
            async with self._looks:
                known = await changes.result(self._place(worktree))
        except ForgeError as problem:
            known = structs.replace(known, note=str(problem))
        if view.agent is not None:
            text = view.agent.text or None
            known = structs.replace(known, text=text, usage=view.agent.usage)
        return known

    async def diff(self, selector: str, form: DiffForm = "patch") -> bytes:
        worktree = self._made_for(await self.job(selector))
        async with self._looks:
            return await changes.diff(self._place(worktree), form)

    async def apply(
        self, selector: str, mode: ApplyMode = "auto", *, commit_first: bool = False
    ) -> Applied:
        view = await self.job(selector)
        row = self._row(view.id)
        worktree = self._made_for(view)
        if view.state not in TERMINAL:
            raise Refused(
                f"job {view.id} is {view.state}: only what has ended can be applied"
            )
        if worktree.state not in ("ready", "removed"):
            raise Refused(f"the worktree {worktree.id} is {worktree.state}: try again")
        place = self._place(worktree)
        try:
            tip = await changes.tip_of(place)
        except NotFound as gone:
            raise Refused(str(gone)) from None
        applying = Applying(
            jobs=self,
            store=self._store,
            repo=worktree.repo,
            checkout=await self._checkout_of(row),
            place=place,
            now=self._clock.now,
        )
        return await applying.apply(tip, mode, commit_first=commit_first)

    def _worktree_of(self, view: JobView) -> Worktree | None:
        """The worktree that a job works in, made for it or for the one that it is the
        continuation `of`."""
        if view.worktree is None:
            return None
        rows = self._store.read("worktree", view.worktree.get("of") or view.id)
        return worktree_from(rows[0]) if rows else None

    def _made_for(self, view: JobView) -> Worktree:
        """The same, once it was made, even if it is gone by now.

        Raises:
            Refused: it has none.
        """
        worktree = self._worktree_of(view)
        if worktree is None or worktree.base_commit is None:
            raise Refused(
                f"job {view.id} has no worktree of its own, so nobody can tell what it"
                " changed; submit --isolate gives it one"
            )
        return worktree

    def _place(self, worktree: Worktree) -> changes.Place:
        repo = self._registry.get(worktree.repo)
        if repo is None:
            raise Refused(f"the repository of job {worktree.id} was removed")
        assert worktree.base_commit is not None
        home = os.path.realpath(self._home)
        path = os.path.join(home, worktree.path)
        there = worktree.state in ("ready", "removing")
        return changes.Place(
            job=worktree.id,
            common_dir=repo.common_dir,
            branch=worktree.branch,
            base=worktree.base_commit,
            folder=changes.folder_of(path, repo.common_dir) if there else None,
            last_known=None if there else _last_known(home, worktree.id),
        )

    async def _checkout_of(self, row: tuple[Any, ...]) -> str:
        """The root of the checkout that a job was submitted for."""
        repo = self._registry.get(row[25])
        assert repo is not None, "its place was found"
        try:
            found, checkout = await self._registry.find(spec_from((row[5],)).cwd)
        except ForgeError:
            return repo.path
        mine = checkout is not None and found.id == repo.id
        return checkout.root if mine and checkout is not None else repo.path


def _last_known(home: str, worktree: str) -> str | None:
    """The last commit of a worktree that is gone, by its receipt."""
    path = os.path.join(home, PRESERVED, worktree, "receipt.json")
    try:
        with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)) as file:
            told = json.loads(file.read(_MAX_RECEIPT))
        found = (told.get("checkpoint") or {}).get("commit") or told.get("head")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, str) else None
