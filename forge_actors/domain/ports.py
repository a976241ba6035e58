"""The ports: what the actors and the runtime need from the outside, as Protocols."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.events import EventPage, EventQuery
    from forge_actors.domain.holding import Holding
    from forge_actors.domain.jobs import Job, JobSpec, JobView, State
    from forge_actors.domain.launch import (
        Ending,
        LaunchOrder,
        ProcessIdentity,
        Receipt,
    )
    from forge_actors.domain.ledger import Ledger
    from forge_actors.domain.ownership import Owner
    from forge_actors.domain.pauses import PauseView
    from forge_actors.domain.releases import ReleaseCheck
    from forge_actors.domain.repositories import (
        Checkout,
        Identity,
        RepositoryDetails,
        RepositoryView,
    )
    from forge_actors.domain.requests import (
        Accepted,
        Explanation,
        JobEdit,
        JobQuery,
        JobRequest,
        LogChunk,
        Retried,
    )
    from forge_actors.domain.selection import Selection
    from forge_actors.domain.settings import SettingChange, SettingView
    from forge_actors.domain.steering import Steering


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

    async def exited(self) -> Receipt:
        """Wait until the whole process tree is gone. Every attempt has one receipt."""

    def stop(self, *, grace: float | None = None, ending: Ending = "stop") -> None:
        """Ask for the end of the tree: its stop signal, `grace` seconds, then kill.

        Without `grace` the order's own holds. A second call can only shorten it.
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

    def launch(self, order: LaunchOrder) -> RunningAttempt:
        """Start one attempt. The same job and attempt again is the same process.

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

    def load(self, repo: str) -> Ledger:
        """An empty ledger with the fence and the settings of one repository."""

    def load_jobs(self, repo: str) -> list[Job]:
        """Its jobs that have not ended, oldest first, as they were saved."""

    def load_readable_jobs(
        self, repo: str
    ) -> tuple[list[Job], dict[str, tuple[State, Exception]]]:
        """The same, but for those that cannot be read; of these the states, and why."""

    def spec(self, job: str) -> JobSpec:
        """What the ledger does not hold of a job."""

    def child_of(self, job: str) -> str | None:
        """The first job that this one handed its work to."""

    def when_ended(self, job: str, notify: Callable[[State], None]) -> None:
        """Call `notify` once the end of `job` is durable; at once if it is."""


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


class Control(Protocol):
    """Everything a caller can ask of a runtime; entry points see only this.

    A selector is an id, or a unique prefix or tail of at least 4 characters of one.
    Every method may raise InvalidInput, NotFound, Refused or StoreFailed.
    """

    async def status(self) -> dict[str, object]: ...

    async def wait_ready(self) -> None:
        """Return when the service is ready.

        This wait and those of an idle or drained service raise Unavailable when the
        runtime ends first.
        """

    async def wait_idle(self) -> None:
        """Return when no job waits or runs."""

    async def drain(self) -> None:
        """Start nothing more until `undrain` or the end of the runtime."""

    async def undrain(self) -> None:
        """Work again."""

    async def wait_drained(self) -> None:
        """Return when nothing runs any more.

        Raises:
            Refused: the drain was cancelled.
        """

    async def add_repository(
        self, path: str, name: str | None = None
    ) -> RepositoryView: ...

    async def repositories(self) -> list[RepositoryView]: ...

    async def repository(self, name: str) -> RepositoryDetails: ...

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView: ...

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        """Let jobs of the repository start, or start nothing new."""

    async def submit(self, requests: Sequence[JobRequest]) -> list[Accepted]:
        """Accept all of the jobs or none; they are durable when this returns."""

    async def jobs(self, query: JobQuery) -> list[JobView]: ...

    async def select(self, selection: Selection) -> list[str]:
        """The ids of the jobs that are meant, newest first.

        Raises:
            Refused: they are more than MAX_SELECTED.
        """

    async def job(self, selector: str) -> JobView: ...

    async def jobs_named(self, selectors: Sequence[str]) -> list[JobView]:
        """Several jobs as they are now, in the order of their selectors."""

    async def why(self, selector: str) -> Explanation: ...

    async def check_fence(self, job: str, attempt: int, fence: int) -> Holding:
        """Whether this attempt is the current one of a job, which its id names."""

    async def cancel(self, selector: str, *, grace: float | None = None) -> JobView:
        """End a job. One that runs is only asked to stop when this returns."""

    async def cancel_all(
        self, selectors: Sequence[str], *, grace: float | None = None
    ) -> list[JobView]:
        """The same for several; those that have ended stay as they are."""

    async def steer_all(self, selectors: Sequence[str], how: Steering) -> list[JobView]:
        """Hold, unhold, pause or resume several jobs.

        Raises:
            Refused: one cannot be. Then none is, unless it was only just so.
        """

    async def hold(self, selector: str) -> JobView:
        """Keep a job that waits from starting, until `unhold`."""

    async def unhold(self, selector: str) -> JobView: ...

    async def pause_job(self, selector: str) -> JobView:
        """Suspend a job that runs; hold one that waits."""

    async def resume_job(self, selector: str) -> JobView: ...

    async def edit(self, selector: str, edit: JobEdit) -> JobView:
        """Change all of the given fields of a job that waits, or none."""

    async def pause(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """Start nothing more in `all`, `repo:NAME` or `provider:NAME`; all pauses.

        With `jobs` what runs there is suspended too.
        """

    async def resume(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """End that pause, and with it what it suspended; the pauses that are left.

        With `jobs` also jobs there that were suspended one by one go on.
        """

    async def quarantined(self) -> list[dict[str, object]]:
        """The claims that are kept for what ended jobs left, oldest first."""

    async def release_quarantine(self, selector: str) -> dict[str, object]:
        """Free what is kept for one job, though nothing is proven gone; what that was.

        Raises:
            Refused: nothing is kept for it.
        """

    async def retry(
        self, selectors: Sequence[str], *, origin: str = "cli"
    ) -> list[Retried]:
        """Make new jobs of some that have ended: all of them or none, durable.

        What ran after one that is retried too runs after its retry.

        Raises:
            Refused: one has not ended, or runs after what did not succeed.
        """

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        """Return when every one of the jobs has ended."""

    async def read_log(
        self,
        selector: str,
        stream: str,
        offset: int,
        *,
        limit: int,
        wait: bool = False,
        attempt: int | None = None,
    ) -> LogChunk:
        """Read `stdout` or `stderr` of one attempt, the last one, from `offset`.

        A negative offset counts from the end. With `wait` an empty chunk is returned
        only when the attempt is over, also one that is still to begin.
        """

    async def wait_output(
        self, selector: str, known: int, *, attempt: int | None = None
    ) -> None:
        """Return when both streams together passed `known` bytes, or at its end."""

    async def log_start(
        self, selector: str, stream: str, since: str, *, attempt: int | None = None
    ) -> int:
        """The offset from which on the output came at a time, or a span ago."""

    async def events(self, query: EventQuery, *, wait: bool) -> EventPage:
        """The events that a query asks for, at most `limit` of them, oldest first.

        With `wait` there is at least one, unless the runtime ends: then there is none.
        """

    async def settings(self) -> list[SettingView]:
        """Every setting in force, with where it comes from."""

    async def reload_settings(self) -> list[SettingChange]:
        """Read the file and the environment again; what changed, or nothing at all."""

    def request_stop(self, *, jobs: bool = False) -> int:
        """Begin an orderly stop of the whole runtime, and say how many jobs run now.

        They run on without it if they can; with `jobs` they are ended.
        """

    def check_release(self) -> ReleaseCheck:
        """Look whether the release that runs is still the active one of its home.

        If it is not, the runtime hands over and ends.
        """
