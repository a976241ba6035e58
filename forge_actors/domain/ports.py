"""The ports: what the actors and the runtime need from the outside, as Protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from forge_actors.domain.agents import Usage
    from forge_actors.domain.changes import Change, ForgottenJob
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.day_budgets import DayUse
    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.git_status import Sample
    from forge_actors.domain.inbox import Mark
    from forge_actors.domain.jobs import Job, JobSpec, State
    from forge_actors.domain.launch import Ending, LaunchOrder, ProcessIdentity, Receipt
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.looking import Look, Unwatchable
    from forge_actors.domain.maintenance import (
        Books,
        ClassVisit,
        CleanOrder,
        CleanResult,
        CleanRun,
    )
    from forge_actors.domain.ownership import Owner
    from forge_actors.domain.relocation import Relocation
    from forge_actors.domain.repositories import Checkout, Identity, Repository
    from forge_actors.domain.webhooks import HookMark
    from forge_actors.domain.worktrees import (
        LeftLocks,
        MadeWorktree,
        Worktree,
        WorktreePlan,
        WorktreeWanted,
    )


class Clock(Protocol):
    """Where moments come from. Durations come from `trio.current_time()`."""

    def now(self) -> float:
        """Seconds since 1970, UTC, that only go on: what the wall clock said when the
        runtime began, and what has passed since."""

    def wall(self) -> float:
        """Seconds of the wall clock since 1970, UTC, for what people ask and see."""

    def ahead(self) -> float:
        """How far the wall clock is ahead of `now`, if it was set, else 0."""


class RunningAttempt(Protocol):
    """One attempt that was given to a launcher."""

    @property
    def receipt(self) -> Receipt | None:
        """How it ended, once it has."""

    async def started(self) -> ProcessIdentity | None:
        """Wait until the process runs; None if it never did (see the receipt)."""

    def once_settled(self, notify: Callable[[], object]) -> bool:
        """Have this called when `started` would return, later than now.

        False: it will not be, as that is known by now, or can only be waited for.
        """

    async def exited(self) -> Receipt:
        """Wait until the whole process tree is gone. Every attempt has one receipt."""

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        """Ask for the end of the tree: its stop signal, `grace` seconds, then kill.

        Without `grace` the order's own holds. A second call can only shorten it.

        One that lasts is only asked: each of the first two calls is a stop signal to
        its first process. As `withdrawn` one ends that has not begun for want of room,
        and every other goes on.
        """

    def pause(self) -> None:
        """Ask for the whole tree to stand still, and with it the time budgets.

        Changes nothing for an attempt that is paused or about to end. `stop` of a
        paused attempt lets it go on, so that it can act on the signal.
        """

    def resume(self) -> None:
        """Let a paused tree go on; changes nothing for one that runs."""


class Launcher(Protocol):
    """Starts the processes of jobs, and finds those that an earlier runtime started."""

    @property
    def heard_at(self) -> float:
        """When there was a sign of life of what runs, in `trio.current_time()`."""

    def ping(self) -> None:
        """Ask for a sign of life."""

    def launch(
        self, order: LaunchOrder, descriptors: Descriptors | None = None
    ) -> RunningAttempt:
        """Start one attempt. The same job and attempt again is the same process.

        Its process, and no other one, has the descriptors, from 3 on. They are the
        launcher's from now on, which closes them here as soon as the process has them
        or certainly never will; also when this raises.

        Raises:
            LauncherDown: nothing can be started now.
        """

    def adopt(self, job: str, attempt: int) -> RunningAttempt | None:
        """An attempt that an earlier runtime launched, whether it has ended or not.

        None: it certainly never began, and never will.
        """

    def still_alive(
        self, identities: Sequence[ProcessIdentity]
    ) -> tuple[ProcessIdentity, ...]:
        """Those that are not proven gone. Cheap: it looks at these, at nothing else."""

    def forget(self, job: str, attempt: int) -> None:
        """The receipt's outcome is saved; the launcher may drop its own copy."""

    async def wait_output(self, job: str, attempt: int, known: int) -> None:
        """Wait until both streams together hold more than `known` bytes, or its end."""


class WallTimer(Protocol):
    """Waits for a time of the wall clock."""

    async def wait(self, until: float) -> None:
        """Return at that second of the wall clock since 1970, UTC, or after it, also
        when the machine slept over it; and whenever the clock was set."""


class Saved(Protocol):
    """The promise that a change becomes durable."""

    async def wait(self) -> None:
        """Wait for the commit.

        Raises:
            StoreFailed: it was not saved.
        """


class Store(Protocol):
    """Jobs, repositories and events, durable. Many changes share one commit.

    From the moment another one took over what it holds, also in another process, it
    raises WriterFenced for whatever it is to save, and nothing of that is kept.
    """

    def take_over(
        self, instance: str, process: ProcessIdentity, release: str, now: float
    ) -> Owner:
        """Become the one who may write, with a larger epoch than any before.

        Durable when it returns. Nothing is to be saved before.
        """

    def save(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> Saved:
        """Make the changes part of the next commit; all of them or none.

        `then` is called once they are durable. `lazy` changes start no commit of their
        own: they ride with the next one, at most 250 ms later.

        Raises:
            StaleFence: one is of an attempt that is not the current one of its job.
                That is noted, and harms nobody else.
        """

    def hasten(self) -> None:
        """Nothing more is to come along with what was saved lazily: commit it now,
        unless a commit is due anyway. It may be durable when this returns."""

    def load(self, repo: str) -> Ledger:
        """An empty ledger with the fence and the settings of one repository."""

    def load_jobs(self, repo: str) -> list[Job]:
        """Its jobs that have not ended, oldest first, as they were saved."""

    def load_readable_jobs(
        self, repo: str
    ) -> tuple[list[Job], dict[str, tuple[State, Exception]]]:
        """The same, but for those that cannot be read; of these the states, and why."""

    def claims(self, repo: str) -> dict[str, tuple[Claim, ...]]:
        """What its jobs that have not ended claim, and what ended ones left held, as
        it was saved."""

    def spec(self, job: str) -> JobSpec:
        """What the ledger does not hold of a job."""

    def child_of(self, job: str) -> str | None:
        """The first job that this one handed its work to."""

    def session_usage(self, agent: str, session: str) -> Usage | None:
        """What the attempts so far used of a session of an agent; None if that is not
        known from its beginning."""

    def used_since(self, at: float) -> list[DayUse]:
        """What agents used since a moment of the wall clock."""

    def worktree(self, job: str) -> Worktree | None:
        """What is known of the worktree that was made for a job."""

    def inbox_marks(self) -> list[Mark]:
        """What was done about items of the inbox, as it was saved."""

    def webhooks(self) -> list[HookMark]:
        """How far each webhook is, as it was saved."""

    def epic(self, run: str) -> bytes | None:
        """A run of an EPIC as it was saved."""

    def active_epics(self) -> list[str]:
        """The ids of the runs that have not ended, oldest first."""

    def epic_of_request(self, request: str) -> str | None:
        """The run that a request began, durable or not yet."""

    def look(self, repo: str) -> Look | None:
        """What was saved of the git status of one repository."""

    def unfinished_looks(self) -> list[Look]:
        """Those of repositories that need a sample, by marks or by jobs since then."""

    def oldest_look(self) -> str | None:
        """The repository that was tried longest ago, or never; None: there is none."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        """Call `notify` once the end of `job` is durable; at once if it is.

        Of one that retention has removed nobody knows how it ended: `stale`."""


class KeptStore(Store, Protocol):
    """A store out of which a clean-up may have things removed.

    Moments are those of the wall clock here, as what is stored.
    """

    def last_end(self) -> float | None:
        """When the job ended that had ended last when the store was opened."""

    def once_ended(self, notify: Callable[[], object]) -> None:
        """Call `notify` when the next end of any job is durable; in place of whoever
        asked before."""

    def clean_run(self) -> CleanRun | None:
        """What was saved of the runs of the clean-up."""

    def class_visits(self) -> dict[CleanClass, ClassVisit]:
        """What was saved of its last visits."""

    def forgetting(self) -> AbstractAsyncContextManager[None]:
        """Watch over what jobs that have not ended run after, within the block."""

    def forgettable(
        self, jobs: Sequence[str], ended_before: float
    ) -> tuple[ForgottenJob, ...]:
        """Those of these jobs that may go now: they ended before that moment and
        nothing refers to them. Only within `forgetting`."""

    async def oldest_active(self) -> float | None:
        """When the oldest job was accepted that has not ended."""

    def old_history(
        self, after: int, before: int, rows: int
    ) -> list[tuple[int, int, float]]:
        """The first rows of the history in a range of numbers, both ends excluded: the
        number of the first event of each, the number behind its last, and the latest
        moment in it."""

    def history_range(self) -> tuple[int, int]:
        """The number of the first event, and that of the first one of the last row."""

    async def upkeep(self, *, may_vacuum: bool) -> int:
        """Fold the log back, and give up free pages if that is worth it; bytes freed.

        A vacuum is broken off as soon as anything is saved.
        """


class CleanUp(Protocol):
    """The clean-up program."""

    async def run(self, order: CleanOrder, books: Books) -> CleanResult:
        """One run, to its end. It has no process any more when this returns or raises,
        and that of a run that is cancelled is ended first.

        Raises:
            CleanUpFailed: it could not be started, crashed, or took too long.
        """


class Git(Protocol):
    """The git program."""

    async def checkout(self, path: str) -> Checkout:
        """What git says of a folder.

        Raises:
            InvalidInput: it does not exist or is in no git work tree.
        """

    def identity(self, common_dir: str) -> Identity | None:
        """What identifies the repository of a common directory; None if it is gone."""

    def add_id(self, common_dir: str, repo_id: str) -> None:
        """Write an id into the repository, as its newest one.

        Raises:
            InvalidInput: it cannot be written to.
        """

    def seek(self, common_dir: str, repo_id: str) -> list[tuple[str, Identity]]:
        """The common directories beside an old one that have an id: where the
        repository is now, or copies of it. A bounded number of folders is looked at."""

    def relink(self, common_dir: str, old: str, moved: Relocation) -> None:
        """Let the linked work trees of a repository that was at `old` find it again."""


class Worktrees(Protocol):
    """Makes the worktrees of jobs. Everything here raises WorktreeFailed if git, or
    what it finds, does not allow it; cancelled, it leaves what `make` can go on from.
    """

    async def plan(self, wanted: WorktreeWanted) -> WorktreePlan:
        """What it will begin as; nothing is changed."""

    async def make(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        """Make it, or finish what an earlier try began; `known` is saved already.

        Done again, it is the same worktree. Nobody's work is overwritten: a branch that
        somebody else made is not taken, and a folder that is not as we left it is moved
        aside.
        """

    async def enter(self, wanted: WorktreeWanted, known: Worktree) -> MadeWorktree:
        """Look whether one that is ready is still what it was made as."""

    async def undo(self, wanted: WorktreeWanted, known: Worktree) -> None:
        """Take back what a try to make it left: the branch and the folder."""


class StatusSampler(Protocol):
    """Looks at the checkouts of repositories, and changes nothing there."""

    async def sample(self, repository: Repository, limit: float) -> Sample:
        """The git status of its checkout, or why there is none within `limit` seconds.

        Nothing that it started is left when this returns, also when it is cancelled.
        """


class FileWatch(Protocol):
    """Tells in which checkouts files change, for as long as it is used."""

    async def watch(self, repository: Repository) -> Unwatchable | None:
        """Tell of this one too from now on; why not, if that cannot be."""

    def forget(self, repo: str) -> None:
        """Tell no more of this one."""

    async def changed(self) -> set[str]:
        """Wait until files changed in one or more; those. Changes while nobody waits
        are told to whoever waits next."""


class Locks(Protocol):
    """The locks of git programs."""

    def remove_left(self, folder: str, since: float, until: float) -> LeftLocks:
        """Remove those that a job left in its checkout, when it ran there from `since`
        until `until`. One that may be somebody else's stays, and is told."""
