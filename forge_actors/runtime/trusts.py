"""What is trusted of the repositories of one runtime, and whether their files say that.

Nothing is read from a checkout but to be compared and shown: whoever starts something
takes what the store has. A checkout is looked at again when its git status was, so it
costs nothing while nothing happens.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
import trio

from forge_actors.domain.errors import InvalidInput, NotFound, StoreFailed
from forge_actors.domain.forge_files import Contents, FiledWorkflow, read_contents
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.trust import (
    Differs,
    Found,
    Trusted,
    TrustNote,
    compare,
    differing,
    differs_from,
    encoded,
    note,
    state_of,
    trust_event,
    trusted_from,
)
from forge_actors.domain.trust_changes import TrustDiffers
from forge_actors.edges.git.forge_files import read_forge

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Repository
    from forge_actors.edges.sqlite.store import SqliteStore

log = logging.getLogger(__name__)

#: Repositories whose trusted content is kept as it was understood.
UNDERSTOOD = 32


class Trusts:
    """`run` is the task that notices what differs."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        repository: Callable[[str], Repository | None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._repository = repository
        #: Those to be looked at, the first one first.
        self._due: dict[str, None] = dict.fromkeys(store.trusting())
        #: The ids of all that are trusted.
        self._trusted = set(self._due)
        self._some = trio.Event()
        self._understood: dict[tuple[str, int], Contents] = {}
        if self._due:
            self._some.set()

    # -- what is trusted -------------------------------------------------------------

    def trusted(self, repo: str) -> Trusted | None:
        """What a person took over of the repository with this id; nothing, if what is
        stored of it cannot be read: then it has to be taken over anew."""
        row = self._store.trusted(repo)
        try:
            return None if row is None else trusted_from(row[0])
        except (msgspec.MsgspecError, RecursionError) as error:
            log.error("what is trusted of %s cannot be read: %s", repo, error)
            return None

    async def contents(self, repo: str) -> Contents:
        """What that says: nothing, if nothing is trusted."""
        trusted = self.trusted(repo)
        if trusted is None:
            return Contents()
        key = (repo, trusted.revision)
        known = self._understood.pop(key, None)
        if known is None:
            known = await trio.to_thread.run_sync(read_contents, trusted.files)
        self._understood[key] = known
        while len(self._understood) > UNDERSTOOD:
            del self._understood[next(iter(self._understood))]
        return known

    async def workflow(self, repo: Repository, name: str) -> FiledWorkflow:
        """A workflow of a repository, as a person took it over.

        Raises:
            NotFound: there is none, or nobody has trusted it.
        """
        for workflow in (await self.contents(repo.id)).workflows:
            if workflow.name == name:
                return workflow
        raise NotFound(
            f"{repo.name} has no trusted workflow {name!r}; forge-actors repo trust"
            f" {repo.name} --show shows what there is"
        )

    def changed(self, repo: str, *, trusted: bool) -> None:
        """Somebody has taken it over, or has taken that back."""
        (self._trusted.add if trusted else self._trusted.discard)(repo)
        for key in [key for key in self._understood if key[0] == repo]:
            del self._understood[key]

    # -- what is there ---------------------------------------------------------------

    async def found(self, repo: Repository) -> Found:
        """What is in its checkout now."""
        try:
            return Found(await trio.to_thread.run_sync(read_forge, repo.path))
        except InvalidInput as error:
            return Found(problem=str(error))
        except NotFound as error:
            return Found(problem=str(error), gone=True)

    async def note(self, repo: Repository) -> TrustNote:
        """In short how things are, looked at now."""
        before = self._revision(repo.id)
        found = await self.found(repo)
        trusted = self.trusted(repo.id)
        self._keep(repo, found, before)
        state = state_of(trusted, found)
        changed = [
            each.name for each in compare(trusted, found) if each.change != "same"
        ]
        return TrustNote(
            state,
            None if trusted is None else trusted.digest,
            None if trusted is None else timestamp(trusted.taken),
            note(repo.name, state, changed, found.problem),
        )

    def looked(self, repo: str) -> None:
        """Its checkout was looked at: something in it may have changed."""
        if repo in self._trusted:
            self._due[repo] = None
            self._some.set()

    async def run(self) -> None:
        """Notice what differs from what is trusted, until cancelled."""
        while True:
            await self._some.wait()
            if not self._due:
                self._some = trio.Event()
                continue
            repo_id = next(iter(self._due))
            del self._due[repo_id]
            repo = self._repository(repo_id)
            if repo is None:
                self._trusted.discard(repo_id)
                continue
            try:
                before = self._revision(repo_id)
                self._keep(repo, await self.found(repo), before)
            except StoreFailed as error:
                log.info("what differs of %s is not saved: %s", repo.name, error)
            except Exception:  # nothing else is to fail with it
                log.exception("what is trusted of %s cannot be compared", repo.name)

    def _revision(self, repo: str) -> int | None:
        trusted = self.trusted(repo)
        return None if trusted is None else trusted.revision

    def _keep(self, repo: Repository, found: Found, before: int | None) -> None:
        """Save how it differs, if that is news; `before` is the revision from before
        the files were read, as what was taken over since is newer than they."""
        row, trusted = self._store.trusted(repo.id), self.trusted(repo.id)
        if row is None or trusted is None or self._repository(repo.id) is None:
            return
        if trusted.revision != before:
            self.looked(repo.id)
            return
        known: Differs | None = None if row[1] is None else differs_from(row[1])
        now = differing(trusted, found, known, self._clock.wall())
        if now == known:
            return
        data: dict[str, object] = {"differs": now is not None}
        if now is not None:
            data |= {"files": list(now.files), "digest": now.digest}
        kind, at = "repository_trust_differs", self._clock.now()
        event = trust_event(kind, repo.id, repo.name, at, data)
        body = None if now is None else encoded(now)
        self._store.save([TrustDiffers(repo.id, body, event)])
