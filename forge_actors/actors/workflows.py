"""The actor of one workflow: has its steps submitted as jobs, and follows their ends.

What comes next is decided by its plan (`domain/workflows.py`). The job of a step has a
request id by the workflow, the step and the number of the try, so a crash between the
job and the record of it makes no second one. A step is saved when it has its job, and
when that has ended; everything else follows from these.

Its notices are few: for each step that has a job one of its end, and one for each
submission, of which one is under way at a time.
"""

from __future__ import annotations

import logging
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.mailbox import Inbox, Mailbox, open_mailbox, serving
from forge_actors.actors.workflows_messages import (
    Answer,
    Cancel,
    Count,
    Due,
    Ended,
    Freed,
    Looked,
    Message,
    Pause,
    Resume,
    Submitted,
    Tell,
)
from forge_actors.actors.workflows_messages import Context as Context
from forge_actors.domain.disk import DiskLow
from forge_actors.domain.errors import (
    ActorStopped,
    AdmissionBlocked,
    Forbidden,
    ForgeError,
    MailboxClosed,
    NotFound,
    Refused,
    RequestTaken,
    StoreFailed,
    Unavailable,
)
from forge_actors.domain.rounds import in_turn
from forge_actors.domain.workflow_changes import WorkflowsForgotten
from forge_actors.domain.workflow_records import (
    loaded,
    saved,
    step_saved,
    workflow_event,
)
from forge_actors.domain.workflow_requests import request_id, request_of
from forge_actors.domain.workflow_steps import StepEnd

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.actors.mailbox import Reply
    from forge_actors.domain.changes import Change
    from forge_actors.domain.events import Event
    from forge_actors.domain.jobs import State
    from forge_actors.domain.ports import Saved
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.workflow_definitions import StepDefinition
    from forge_actors.domain.workflow_steps import Step, Workflow

log = logging.getLogger(__name__)

#: Steps that are submitted together.
TOGETHER = 200
#: Seconds until the next try of steps that could not be submitted for now.
TRY_AGAIN = 30.0
#: Workflows that have ended and are kept.
KEPT = 500
#: Nothing can be submitted for now; and this one step cannot.
_NOTHING = (StoreFailed, Unavailable, ActorStopped, DiskLow, AdmissionBlocked)
_THIS_ONE = (*_NOTHING, Refused)
_NEVER = (Forbidden, RequestTaken)


@trio.lowlevel.enable_ki_protection
async def run(
    context: Context, workflow: str, *, task_status: trio.TaskStatus[Mailbox[Message]]
) -> None:
    """Move a workflow on, and return when it has ended.

    Raises:
        UnreadableWorkflow: what was saved of it cannot be used.
    """
    row = context.store.workflow(workflow)
    if row is None:
        raise Refused(f"there is no workflow {workflow}")
    mailbox: Mailbox[Message]
    inbox: Inbox[Message]
    mailbox, inbox = open_mailbox()
    async with trio.open_nursery() as children:
        actor = _Workflow(context, row, mailbox, children)
        with serving(inbox):
            actor.load()
            task_status.started(mailbox)
            while not actor.over:
                actor.handle(await inbox.receive())
                actor.look()
        children.cancel_scope.cancel()
    # Whoever waits for the end of it hears of one that no crash takes back.
    await actor.last.wait()


class _Workflow:
    """The state of the actor's task."""

    def __init__(
        self,
        context: Context,
        row: tuple[tuple[bytes, bytes], Sequence[bytes]],
        mailbox: Mailbox[Message],
        nursery: trio.Nursery,
    ) -> None:
        self._context = context
        self._mailbox = mailbox
        self._nursery = nursery
        self._workflow, self._definition, steps = loaded(*row)
        self._plan = context.plan(self._definition, steps)
        #: Steps that are being submitted, and those that wait for the next try.
        self._under_way: list[Step] = []
        self._held_back: list[Step] = []
        self._will_try_again = False
        #: Nothing is submitted until then.
        self._closed = False
        #: The last promise of the store.
        self.last: Saved

    @property
    def over(self) -> bool:
        return self._workflow.ended is not None

    # -- the beginning ---------------------------------------------------------------

    def load(self) -> None:
        """Go on from what was saved."""
        for step in self._plan.steps:
            if step.state == "running" and step.job is not None:
                self._follow(step.name, step.job)
        if self._workflow.state != "running":
            self._adopt()
        if self._workflow.state == "cancelling":
            self._save(self._plan.cancel(self._wall))
            self._cancel_jobs()
        else:
            self._save(self._plan.begin(self._wall))
        self.look()

    def _adopt(self) -> None:
        """Know of jobs that nobody wrote down, as no submission finds them."""
        for step in self._plan.steps:
            if step.state == "waiting":
                request = request_id(self._workflow.id, step.name, step.tries + 1)
                if (job := self._context.store.job_of_request(request)) is not None:
                    self._save(self._plan.submitted(step, job, self._wall))
                    self._follow(step.name, job)

    # -- messages --------------------------------------------------------------------

    def handle(self, message: Message) -> None:
        match message:
            case Submitted(outcomes):
                self._submitted(outcomes)
            case Ended(step, job, state):
                self._nursery.start_soon(self._look_at, step, job, state)
            case Looked():
                self._ended(message)
            case Freed():
                pass
            case Due():
                self._closed = self._will_try_again = False
                held, self._held_back = self._held_back, []
                for one in held:
                    self._save(self._plan.give_back(one, self._wall))
            case Tell(reply):
                reply.answer((self._workflow, self._definition, self._told()))
            case Count(reply):
                counts = Counter[str](step.state for step in self._plan.steps)
                told = [] if self._definition.goal is None else self._told()
                reply.answer((self._workflow, self._definition, dict(counts), told))
            case _:
                with message.reply:
                    try:
                        self._serve(message)
                    except ForgeError as error:
                        message.reply.refuse(error)

    def _told(self) -> list[tuple[Step, StepDefinition]]:
        plan = self._plan
        return [(structs.replace(step), plan.define(step.name)) for step in plan.steps]

    def _serve(self, message: Pause | Resume | Cancel | Answer) -> None:
        """Do what somebody asks for; the answer is given once it is durable."""
        state, name = self._workflow.state, self._workflow.name
        match message:
            case Pause(reply) if state in ("running", "paused"):
                self._become(structs.replace(self._workflow, state="paused"), reply)
            case Resume(reply) if state in ("running", "paused"):
                self._become(structs.replace(self._workflow, state="running"), reply)
            case Cancel(reply):
                changed = self._plan.cancel(self._wall)
                held, self._held_back = self._held_back, []
                for one in held:
                    changed += self._plan.give_back(one, self._wall)
                workflow = structs.replace(self._workflow, state="cancelling")
                self._become(workflow, reply, changed)
                self._cancel_jobs()
            case Answer(step, yes, reply) if state in ("running", "paused"):
                changed = self._plan.answer(step, yes=yes, now=self._wall)
                self._save(changed, then=partial(reply.answer, self._workflow))
            case _:
                raise Refused(f"workflow {name!r} is {state}")

    def _become(
        self, workflow: Workflow, reply: Reply[Workflow], changed: Sequence[Step] = ()
    ) -> None:
        before, self._workflow = self._workflow, workflow
        event = None
        if before.state != workflow.state:
            event = self._event(f"workflow_{_DONE[workflow.state]}")
        self._save(changed, event, then=partial(reply.answer, workflow), itself=True)

    def _submitted(self, outcomes: Sequence[tuple[str, str | Exception]]) -> None:
        self._under_way = []
        changed: list[Step] = []
        for name, outcome in outcomes:
            step = self._plan.by_name[name]
            if isinstance(outcome, str):
                changed += self._plan.submitted(step, outcome, self._wall)
                self._follow(name, outcome)
                if self._workflow.state == "cancelling":
                    self._nursery.start_soon(self._cancel, outcome)
            elif isinstance(outcome, _THIS_ONE) and not isinstance(outcome, _NEVER):
                step.why = f"its job was refused for now: {outcome}"
                self._held_back.append(step)
                self._closed = self._closed or isinstance(outcome, _NOTHING)
            elif isinstance(outcome, ForgeError):
                why = f"its job was refused: {outcome}"
                step.tries += isinstance(outcome, RequestTaken)  # a retry has another
                changed += self._plan.refused(step, why, self._wall)
            else:
                raise outcome
        if self._held_back and not self._will_try_again:
            self._will_try_again = True
            self._nursery.start_soon(self._try_again)
        self._save(changed)

    def _ended(self, message: Looked) -> None:
        step = self._plan.by_name.get(message.step)
        if step is None or step.state != "running" or step.job != message.job:
            return
        self._save(self._plan.ended(step, message.end, self._wall))

    # -- what comes next -------------------------------------------------------------

    def look(self) -> None:
        """Submit what may begin; find out whether it is over."""
        verdict = self._plan.verdict
        if verdict is not None:
            self._workflow = structs.replace(
                self._workflow,
                state=verdict.state,
                why=verdict.why,
                ended=self._wall,
                counts=Counter(step.state for step in self._plan.steps),
            )
            event = self._event(f"workflow_{verdict.state}", reason=verdict.why)
            self._save((), event, itself=True)
            self._context.store.save([WorkflowsForgotten(KEPT)], lazy=True)
        elif self._workflow.state == "running" and not (
            self._under_way or self._closed
        ):
            self._submit_next()

    def _submit_next(self) -> None:
        orders: list[tuple[Step, JobRequest]] = []
        refused: list[Step] = []
        while len(orders) < TOGETHER and (step := self._plan.take()) is not None:
            try:
                orders.append((step, self._request(step)))
            except ForgeError as error:
                why = f"its job cannot be made: {error}"
                refused += self._plan.refused(step, why, self._wall)
        self._under_way = [step for step, _ in orders]
        if orders:
            self._nursery.start_soon(self._submit, orders)
        if refused:
            self._save(refused)
            self._mailbox.tell(Freed())

    def _request(self, step: Step) -> JobRequest:
        defined = self._plan.define(step.name)
        if defined.repo and not self._context.has_repository(defined.repo):
            raise NotFound("its repository was removed")
        request = request_of(defined, self._definition.parameters, self._plan.by_name)
        work, origin = self._workflow.id, f"workflow:{self._workflow.name}"
        own = request_id(work, step.name, step.tries + 1)
        request = structs.replace(request, request_id=own, origin=origin, work=work)
        return request if defined.turn is None else in_turn(request, defined.turn)

    async def _submit(self, orders: list[tuple[Step, JobRequest]]) -> None:
        """Have jobs made for steps, together if that can be."""
        outcomes: list[tuple[str, str | Exception]]
        try:
            jobs = await self._context.submit([request for _, request in orders])
            outcomes = [(s.name, job) for (s, _), job in zip(orders, jobs, strict=True)]
        except Exception as error:  # noqa: BLE001 - the actor decides
            alone = len(orders) == 1 or isinstance(error, _NOTHING)
            if alone or not isinstance(error, ForgeError):
                outcomes = [(step.name, error) for step, _ in orders]
            else:
                outcomes = [await self._submit_one(*order) for order in orders]
        self._mailbox.tell(Submitted(tuple(outcomes)))

    async def _submit_one(
        self, step: Step, request: JobRequest
    ) -> tuple[str, str | Exception]:
        try:
            [job] = await self._context.submit([request])
        except ForgeError as error:
            return step.name, error
        return step.name, job

    async def _try_again(self) -> None:
        await trio.sleep(TRY_AGAIN)
        self._mailbox.tell(Due())

    def _cancel_jobs(self) -> None:
        for step in self._plan.steps:
            if step.state == "running" and step.job is not None:
                self._nursery.start_soon(self._cancel, step.job)

    async def _cancel(self, job: str) -> None:
        try:
            await self._context.cancel(job)
        except ForgeError as error:
            log.info("job %s was not cancelled for its workflow: %s", job, error)

    # -- the world around it ---------------------------------------------------------

    def _follow(self, step: str, job: str) -> None:
        def tell(state: State) -> None:
            with suppress(MailboxClosed):  # whoever is started anew asks again
                self._mailbox.tell(Ended(step, job, state))

        self._context.store.when_ended(job, tell)

    async def _look_at(self, step: str, job: str, state: State) -> None:
        try:
            end = await self._context.result(job, state)
            defined = self._plan.define(step)
            if end.state == "succeeded" and defined.gives_items:
                end = structs.replace(end, items=await self._context.lines(job))
            if defined.turn is not None:
                marks = await self._context.marks(job, defined.turn, end)
                end = structs.replace(end, marks=marks)
        except ForgeError as error:
            end = StepEnd(state, str(error))
        self._mailbox.tell(Looked(step, job, end))

    def _save(
        self,
        steps: Sequence[Step],
        event: Event | None = None,
        *,
        then: Callable[[], object] | None = None,
        itself: bool = False,
    ) -> None:
        now = self._context.clock.now()
        changes: list[Change] = []
        if itself:
            changes.append(saved(self._workflow, event))
        changes += (step_saved(self._workflow, step, now) for step in steps)
        if changes:
            self.last = self._context.store.save(changes, then=then)
        elif then is not None:
            then()

    def _event(self, kind: str, **data: object) -> Event:
        told = {name: value for name, value in data.items() if value is not None}
        return workflow_event(kind, self._workflow, self._context.clock.now(), **told)

    @property
    def _wall(self) -> float:
        return self._context.clock.wall()


_DONE = {"paused": "paused", "running": "resumed", "cancelling": "cancelling"}
