"""Control: everything a caller can ask of a runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.control_controllers import ControllerControl
from forge_actors.domain.control_effects import EffectControl
from forge_actors.domain.control_epics import Epics
from forge_actors.domain.control_events import EventControl
from forge_actors.domain.control_metrics import MetricsControl
from forge_actors.domain.control_policies import PolicyControl
from forge_actors.domain.control_quarantine import QuarantineControl
from forge_actors.domain.control_trust import TrustControl
from forge_actors.domain.control_webhooks import WebhookControl
from forge_actors.domain.control_workflows import Workflows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from forge_actors.domain.artifacts import ArtifactFile, Artifacts
    from forge_actors.domain.cleaning import CleanRequest
    from forge_actors.domain.holding import Holding
    from forge_actors.domain.inbox import Inbox, Item
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.maintenance import CleanResult
    from forge_actors.domain.pauses import PauseView
    from forge_actors.domain.releases import ReleaseCheck
    from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
    from forge_actors.domain.requests import (
        Accepted,
        Continued,
        Explanation,
        JobEdit,
        JobQuery,
        JobRequest,
        LogChunk,
        Retried,
    )
    from forge_actors.domain.results import Applied, ApplyMode, DiffForm, JobResult
    from forge_actors.domain.selection import Selection
    from forge_actors.domain.settings import SettingChange, SettingView
    from forge_actors.domain.spending import Group, UsageReport
    from forge_actors.domain.steering import Steering
    from forge_actors.domain.timeline import Timeline, TimelineQuery
    from forge_actors.domain.worktree_views import (
        WorktreeRemoved,
        WorktreeRestored,
        WorktreeView,
    )


class ArtifactContent(Protocol):
    """A collected file."""

    @property
    def file(self) -> ArtifactFile: ...

    def opened(self) -> AbstractContextManager[Callable[[int], bytes]]:
        """What reads the next bytes of it, at most so many; none at its end.

        Raises:
            StoreFailed: it is not as it was collected.
        """


class Control(
    ControllerControl,
    EffectControl,
    Epics,
    EventControl,
    MetricsControl,
    PolicyControl,
    QuarantineControl,
    TrustControl,
    Workflows,
    WebhookControl,
    Protocol,
):
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

    async def repository(self, name: str) -> RepositoryDetails:
        """One repository; its note says if it is gone, or was found elsewhere."""

    async def relocate_repository(self, name: str, path: str) -> RepositoryView:
        """Have a repository where somebody moved it, and its jobs with it.

        Raises:
            Refused: that is another repository, or a copy.
        """

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView: ...

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        """Let jobs of the repository start, or start nothing new."""

    async def submit(
        self, requests: Sequence[JobRequest], *, key: str | None = None
    ) -> list[Accepted]:
        """Accept all of the jobs or none; they are durable when this returns.

        With a `key` that was used for the same jobs they are those of then.

        Raises:
            Refused: it was used for others.
        """

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

    async def job_mark(self, selector: str) -> str:
        """What tells the record of a job as it is saved now from any other one."""

    async def edit(
        self, selector: str, edit: JobEdit, *, mark: str | None = None
    ) -> JobView:
        """Change all of the given fields of a job that waits, or none.

        With `mark` only if its record still has that one, when the change is made.

        Raises:
            Outdated: it has another one.
        """

    async def pause(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """Start nothing more in `all`, `repo:NAME` or `provider:NAME`; all pauses.

        With `jobs` what runs there is suspended too.
        """

    async def resume(self, scope: str, *, jobs: bool = False) -> list[PauseView]:
        """End that pause, and with it what it suspended; the pauses that are left.

        With `jobs` also jobs there that were suspended one by one go on.
        """

    async def inbox(self) -> Inbox:
        """Everything that needs a person, what is urgent first."""

    async def dismiss(self, item: str) -> Item:
        """Somebody has seen to an item of the inbox: it is shown no more.

        Raises:
            NotFound: nothing is called so. Refused: several items are.
        """

    async def answer(self, selector: str, text: str) -> JobView:
        """Let a job go on that asks something, in its session, with this as its input.

        Raises:
            Refused: it asks nothing, or was answered already.
        """

    async def retry(
        self,
        selectors: Sequence[str],
        *,
        origin: str = "cli",
        resume: bool = False,
        authorise: Sequence[str] = (),
        how: str = "program",
    ) -> list[Retried]:
        """Make new jobs of some that have ended: all of them or none, durable.

        What ran after one that is retried too runs after its retry. With `resume` each
        goes on in the session of its agent, in the same worktree. With `authorise` a
        person allows these effects.

        Raises:
            Refused: one has not ended, or runs after what did not succeed; or has no
                session.
        """

    async def continue_job(
        self, selector: str, prompt: str, *, origin: str = "cli"
    ) -> Continued:
        """Ask the agent of a job that has ended for more, as a new job in the same
        session and worktree. A worktree that was removed is made again.

        Raises:
            Refused: it has not ended, has no session, or another job goes on with that;
                or its worktree cannot be made again.
        """

    async def wait(self, selectors: Sequence[str]) -> list[JobView]:
        """Return when every one of the jobs has ended."""

    async def artifacts(
        self, selector: str, *, attempt: int | None = None
    ) -> Artifacts:
        """What was collected of one attempt of a job, the last one."""

    async def artifact(
        self, selector: str, path: str, *, attempt: int | None = None
    ) -> ArtifactContent:
        """One of the files; it is there when this returns."""

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

    async def settings(self) -> list[SettingView]:
        """Every setting in force, with where it comes from."""

    async def reload_settings(self) -> list[SettingChange]:
        """Read the file and the environment again; what changed, or nothing at all."""

    async def worktrees(
        self, *, removed: bool = False, looking: bool = True
    ) -> list[WorktreeView]:
        """The worktrees that are there, oldest first; `removed` ones too.

        Only `looking` they are counted and measured, which takes its time.
        """

    async def keep_worktrees(
        self, names: Sequence[str], *, keep: bool
    ) -> list[WorktreeView]:
        """Keep worktrees from being removed, or let that be again.

        Raises:
            NotFound: one is not known. Refused: one is being removed.
        """

    async def remove_worktrees(
        self, names: Sequence[str], *, force: bool = False, dry_run: bool = False
    ) -> list[WorktreeRemoved]:
        """Save what is in worktrees and remove them now; whether they are gone then.

        Raises:
            NotFound: one is not known. Unavailable: this runtime has no clean-up.
        """

    async def restore_worktree(
        self, name: str, to: str | None = None
    ) -> WorktreeRestored:
        """Make a worktree that was removed again, where it was or at a path.

        Raises:
            NotFound: it is not known, or nothing was saved of it.
            Refused: it cannot be made, and why.
        """

    async def result(self, selector: str) -> JobResult | None:
        """What a job did in its worktree, read from its repository; None: it has none.

        It never fails because of that: what cannot be read is not known.
        """

    async def diff(self, selector: str, form: DiffForm = "patch") -> bytes:
        """What a job changed in its worktree; MAX_DIFF + 1 bytes if that is too much.

        Raises:
            Refused: it has no worktree. NotFound: nothing is left of it.
        """

    async def apply(
        self, selector: str, mode: ApplyMode = "auto", *, commit_first: bool = False
    ) -> Applied:
        """Bring the branch of a job into the checkout it was submitted for.

        Raises:
            Refused: it cannot be, and why; nothing is changed then.
        """

    async def usage(self, by: Group, since: str | None = None) -> UsageReport:
        """What agents used since a moment, a day in UTC, or a span that ends now.

        Raises:
            InvalidInput: it is none of these.
        """

    async def timeline(self, query: TimelineQuery) -> Timeline:
        """What ran when, on which tokens, and what waited meanwhile.

        Raises:
            InvalidInput: its moments are none.
        """

    async def clean(self, request: CleanRequest) -> CleanResult:
        """Run the clean-up, after the run that goes on; its home and moment are ours.

        Raises:
            Unavailable: this runtime has no clean-up.
        """

    def request_stop(self, *, jobs: bool = False) -> int:
        """Begin an orderly stop of the whole runtime, and say how many jobs run now.

        They run on without it if they can; with `jobs` they are ended.
        """

    def check_release(self) -> ReleaseCheck:
        """Look whether the release that runs is still the active one of its home.

        If it is not, the runtime hands over and ends.
        """
