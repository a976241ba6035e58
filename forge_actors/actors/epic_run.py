"""What one run of an EPIC knows, writes down and is told by others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import trio
from msgspec import Struct, structs

from forge_actors.domain.epic import telling
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.namespace import Expected
from forge_actors.domain.epic.progress import Progress
from forge_actors.domain.epic.reconciling import reconcile
from forge_actors.domain.epic.standalone import held_issue
from forge_actors.domain.epic.stopping import End, Ending
from forge_actors.domain.epic.views import child_view, epic_view
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Collection

    from forge_actors.actors.epic_context import Context
    from forge_actors.domain.epic.graph import EpicNode, RepositoryNode
    from forge_actors.domain.epic.namespace import Namespace
    from forge_actors.domain.epic.reconciling import Report
    from forge_actors.domain.epic.records import Claim, Scheduler
    from forge_actors.domain.epic.verdicts import Fact
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.domain.epic.workers import Worker


class Live(Struct, frozen=True):
    """A worker of this run."""

    issue: int
    claim: Claim
    worker: Worker


class Run:
    """Only the loop and its parts touch it."""

    #: `scheduler.json`, as it was last written.
    record: Scheduler
    nursery: trio.Nursery

    def __init__(
        self,
        context: Context,
        controller: int,
        repository: RepositoryNode,
        epic: EpicNode,
    ) -> None:
        self.context = context
        #: The descriptor of the controller's lock.
        self.controller = controller
        self.repository = repository
        self.epic = epic
        config = context.config
        self.progress = Progress[Live](
            config.max_parallel, config.poll_interval_seconds, context.satisfied_by
        )
        self.ending = Ending(config.stop_grace_seconds)
        #: Seconds until it makes sense to run it again, if the graph said so.
        self.wait: float | None = None
        #: Issues of which was said that somebody has them.
        self._told_live: set[int] = set()
        #: What there is of issues that are left alone, for views.
        self._left_alone: dict[int, Namespace] = {}
        #: Kinds of requests of which was said that they are there.
        self._told_requests: set[str] = set()

    @property
    def expected(self) -> Expected:
        """Who the issues are, as far as is known."""
        snapshot = self.progress.snapshot
        ids = {} if snapshot is None else snapshot.ids
        place = self.repository.place
        return Expected(self.repository.id, place.owner, place.name, ids)

    @property
    def invocation(self) -> str:
        return self.record.invocation.id

    @property
    def now(self) -> str:
        return timestamp(self.context.clock.wall())

    def say(self, text: str) -> None:
        self.context.say(text)

    def tell(self, kind: str, **data: object) -> None:
        self.context.tell(kind, data)

    # -- facts -----------------------------------------------------------------------

    def hold(self, issue: int, fact: Fact, why: str | None = None) -> None:
        """Have an issue left alone until the run ends; what it is held for stays."""
        self.progress.held.setdefault(issue, fact)
        if why is not None:
            self.say(f"#{issue}: {why}")

    def reconcile(self, only: Collection[int] | None = None) -> bool:
        """Find out what earlier runs have left; whether anything may be admitted."""
        context = self.context
        found = reconcile(
            *(context.namespaces, context.locks, self.epic.ref, self.expected, only),
            now=self.now,
        )
        for problem in found.problems:
            self.say(f"nothing can be admitted: {problem}")
        for report in found.reports:
            self._take_in(report, again=only is not None)
        return found.admissible

    def _take_in(self, report: Report, *, again: bool) -> None:
        issue, progress = report.issue, self.progress
        if report.live:
            progress.observed.add(issue)
            if issue not in self._told_live:
                self._told_live.add(issue)
                self.say(f"#{issue}: somebody else works on it")
            return
        if again:
            self.say(f"#{issue}: nobody else works on it any more")
        if report.fact is not None:
            why = None
            if report.fact == "uncertain":
                why = f"it is left alone: {report.detail}"
            self.hold(issue, report.fact, why)
        progress.earlier.pop(issue, None)
        if report.open_claim is not None and report.classification == "resumable":
            progress.earlier[issue] = report.open_claim

    def look_at_standalone(self) -> None:
        """Leave an issue alone that a run of its own works on."""
        try:
            state = self.context.namespaces.standalone()
        except StateError as error:
            self.say(f"the state of a run of its own is left out: {error}")
            return
        issue = held_issue(state, self.expected)
        if issue is not None and issue not in self.progress.held:
            self.hold(issue, "standalone-state", "a run of its own works on it")

    def view(self) -> EpicView | None:
        """The EPIC as people are shown it; None before the graph was read."""
        progress, snapshot = self.progress, self.progress.snapshot
        if snapshot is None:
            return None
        known = {*progress.facts(), *progress.earlier}
        children = []
        for node, verdict in zip(snapshot.children, progress.verdicts(), strict=True):
            number, kept = node.number, None
            if node.place == snapshot.place and number in known:
                kept = self._look(number)
            running = kept is not None and number in progress.live
            children.append(child_view(node, verdict, kept, running=running))
        by = self.context.satisfied_by
        return epic_view(snapshot, children, self.record, satisfied_by=by)

    def _look(self, issue: int) -> Namespace:
        """What there is of an issue. One that the run leaves alone until its end, and
        whose claim is closed, is looked at once: there may be many, and many views."""
        kept = self._left_alone.get(issue)
        if kept is None:
            kept, progress = self.context.namespaces.look(issue), self.progress
            held = issue in progress.held and issue not in progress.live
            if held and kept.latest is not None and kept.latest.closed is not None:
                self._left_alone[issue] = kept
        return kept

    # -- the end ---------------------------------------------------------------------

    def signalled(self) -> None:
        """A signal came; nothing else is done where it arrives."""
        self.ending.signals += 1
        self.context.bell.ring()

    @property
    def is_told_to_stop(self) -> bool:
        """Whether `obey` has anything to do, as far as can be seen at once."""
        self._read_request()
        return not self.ending.open or self.ending.pressing

    @property
    def has_obeyed(self) -> bool:
        """Whether all that is known of it was done, and told."""
        told = self.record.admission == self.ending.admission
        return told and not self.ending.pressing

    def obey(self) -> bool:
        """Do what signals and requests ask for; whether the run is left at once."""
        self._read_request()
        progress = self.progress
        order = self.ending.step(trio.current_time())
        if order == "interrupt":
            live = f" of {telling.names(progress.live)}" if progress.live else ""
            self.say(f"{self.ending.reason}: nothing more begins, workers{live} stop")
        if order != "nothing":
            for issue in sorted(progress.live):
                progress.live[issue].worker.interrupt()
        if self.record.admission != self.ending.admission:
            self.save()
            self.tell("epic_stopping", reason=self.ending.admission.reason)
        return order == "leave"

    def _read_request(self) -> None:
        found = self.context.namespaces.read_stop(self.epic.number)
        if found.kind == "none":
            return
        request = found.request
        if request is not None and request.invocation_id not in (None, self.invocation):
            self._remove_stale_request()
            return
        mode: Literal["drain", "now"] = "drain" if request is None else request.mode
        if mode not in self._told_requests:
            self._told_requests.add(mode)
            why = f" ({found.detail})" if found.detail else ""
            self.say(f"it is asked to stop ({mode}){why}: nothing more begins")
        self.ending.request(mode)

    def _remove_stale_request(self) -> None:
        problem = ""
        try:
            self.context.namespaces.remove_stop(self.epic.number)
        except StateError as error:
            problem = f", and cannot be removed: {error}"
        if "stale" not in self._told_requests:
            self._told_requests.add("stale")
            self.say(f"a request to stop another invocation does not count{problem}")

    def degrade(
        self, reason: Literal["snapshot-refused", "epic-not-admissible"]
    ) -> None:
        self.ending.degrade(reason)
        self.save()
        self.tell("epic_degraded", reason=reason)

    def tell_held(self) -> None:
        """Say which issues are left because of what is known of them here."""
        progress = self.progress
        for verdict in progress.verdicts():
            if verdict.kind in ("held", "owned"):
                is_open = verdict.number in progress.earlier
                phase = None
                if progress.held.get(verdict.number) == "settled-namespace":
                    saved = self.context.namespaces.look(verdict.number).saved
                    phase = None if saved is None else saved.state.phase
                self.say(telling.held(verdict, claim_open=is_open, phase=phase))

    def end(self) -> End:
        """Write down how it ends."""
        progress = self.progress
        reason = self.ending.reason or "nothing-admissible"
        left = tuple(sorted({*progress.live, *progress.ended}))
        if left:
            self.say(telling.left(progress.ended, progress.live))
        invocation = structs.replace(
            self.record.invocation, ended_at=self.now, end_reason=reason
        )
        self.save(invocation=invocation)
        view = self.view()
        counts = {} if view is None else view.counts
        self.say(telling.ended(self.epic.number, reason, counts))
        return End(reason, self.wait, left)

    def save(self, **changes: object) -> None:
        """Write what people and the next run are told. Once it runs, that this fails
        stops nothing."""
        self.record = structs.replace(
            self.record,
            admission=self.ending.admission,
            updated_at=self.now,
            **changes,
        )
        try:
            self.context.namespaces.write_scheduler(self.record)
        except StateError as error:
            self.say(f"the record of the run could not be written: {error}")
