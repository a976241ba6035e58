"""The clients of a run: each operation of the plan, as somebody would do it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar

from msgspec import structs

from forge_actors.actors import repository_messages, supervisor_messages
from forge_actors.domain.effects import Approval, held_back
from forge_actors.domain.errors import (
    ActorStopped,
    ForgeError,
    MailboxClosed,
    StoreFailed,
)
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.requests import JobRequest, Parent
from forge_actors.domain.scopes import DRAIN, repository_of
from forge_actors.runtime.fields import edit_of
from forge_actors.testing.simulation.agents import ANSWER
from forge_actors.testing.simulation.looks import Looks
from forge_actors.testing.simulation.policies import set_policy

if TYPE_CHECKING:
    from forge_actors.domain.requests import JobEdit
    from forge_actors.domain.steering import Steering
    from forge_actors.testing.simulation.plan import Operation
    from forge_actors.testing.simulation.service import Service
    from forge_actors.testing.simulation.world import World

Verb = Callable[["Clients", "Service", "Operation"], Awaitable[None]]

#: What a client does not do again by itself when it does not know whether it was done.
_ONCE = frozenset(
    {"retry", "hand on", "remove", "edit", "restart", "take over", "look"}
)
#: Seconds until what failed is tried again.
AGAIN_SECONDS = 0.1

_STEERING: dict[str, Steering] = {
    "hold": "hold",
    "unhold": "unhold",
    "suspend": "pause",
    "continue": "resume",
}


class _Asking:
    """Somebody asks something of a job now."""

    def __init__(self) -> None:
        self.with_others = False


class Clients:
    """Does operations against whatever service runs, once one does."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The ids that names of the plan were given, the newest.
        self.ids: dict[str, str] = {}
        self._waiting: list[Operation] = []
        #: How many a service is busy with.
        self._busy = 0
        #: What is asked of jobs now: to be held, suspended or let go on.
        self._steering: dict[str, list[_Asking]] = {}

    @property
    def idle(self) -> bool:
        return not self._waiting and not self._busy

    def do(self, operation: Operation) -> None:
        """Begin an operation, or keep it until a service runs."""
        world = self._world
        world.note("does", operation.verb, operation.target)
        match operation.verb:
            case "clock":
                assert isinstance(operation.value, float)
                world.clock.set_wall(operation.value)
            case "suspend machine":
                assert isinstance(operation.value, float)
                world.clock.shift(operation.value)
            case "power":
                world.cut_power()
            case "pressure":
                world.pressure = "simulated" if operation.value else None
            case "move":
                world.places.move(operation.target)
                self._ask(operation)
            case "vanish":
                world.gone.add(self.repo(operation.target))
            case "appear":
                world.gone.discard(self.repo(operation.target))
            case _:
                self._ask(operation)

    def _ask(self, operation: Operation) -> None:
        """Ask the service, or wait for one."""
        if self._world.service is None:
            self._waiting.append(operation)
        else:
            self._start(self._world.service, operation)

    def connected(self, service: Service) -> None:
        """A service runs: go on with what waits for one."""
        waiting, self._waiting = self._waiting, []
        for operation in waiting:
            self._start(service, operation)

    def repo(self, name: str) -> str:
        return self._world.repositories[name]

    def _start(self, service: Service, operation: Operation) -> None:
        self._busy += 1
        service.clients.start_soon(self._run, service, operation)

    async def _run(self, service: Service, operation: Operation) -> None:
        # One that was cut off may have been done: again only if that is safe.
        again = operation.verb not in _ONCE
        try:
            await self._verbs[operation.verb](self, service, operation)
            again = False
        except (StoreFailed, ActorStopped, MailboxClosed) as error:
            self._world.note("fails", operation.verb, operation.target, str(error))
            again = True
        except ForgeError as error:
            self._world.note("refused", operation.verb, operation.target, str(error))
            again = False
        finally:
            self._busy -= 1
            if again:
                self._waiting.append(operation)
                self._world.timers.after(AGAIN_SECONDS, self._go_on)
            self._world.changed()

    def _go_on(self) -> None:
        if self._world.service is not None:
            self.connected(self._world.service)

    # -- jobs ------------------------------------------------------------------------

    async def _submit(self, service: Service, operation: Operation) -> None:
        names = operation.target.split()
        requests = [self._request(name, names) for name in names]
        accepted = await service.admission.submit(requests)
        for name, entry in zip(names, accepted, strict=True):
            self._world.referee.accepted(entry.id)
            before = self.ids.setdefault(name, entry.id)
            original = self._world.first_ids.setdefault(name, entry.id)
            if original != entry.id:
                self._world.fail("one request, one job", f"{name}: {before}")
        self._world.note("accepted", *(entry.id for entry in accepted))

    def _request(self, name: str, batch: list[str]) -> JobRequest:
        request = self._world.plan.jobs[name]
        known = self._world.after_ids
        if request.request_id not in known:
            # The same again must be the same request, whatever became of those.
            known[name] = [
                other if other in batch else self.ids.get(other, "")
                for other in request.after
            ]
        return structs.replace(request, after=[entry for entry in known[name] if entry])

    async def _cancel(self, service: Service, operation: Operation) -> None:
        job = self._job(operation.target)
        if job is None:
            return
        self._world.referee.cancels(job)
        stopping: list[str] = await service.ask(
            self._repo_of(job),
            lambda reply: repository_messages.Cancel((job,), None, reply),
        )
        # Its next attempt, or its end for another reason, may be on its way.
        [(state, attempt, *_)] = service.store.read_pending("job_attempt", job)
        if job in stopping:
            self._world.referee.stopping(job, attempt, service.epoch)
        else:
            holds = state in TERMINAL
            self._world.referee.told(f"{job} is cancelled", holds=holds)

    async def _steer(self, service: Service, operation: Operation) -> None:
        job = self._job(operation.target)
        if job is not None:
            how = _STEERING[operation.verb]
            on = how in ("hold", "pause")
            # What another asker still waits for is no change, and answered at once.
            same = service.store.holds(job) == on
            asking = self._steering.setdefault(job, [])
            mine = _Asking()
            asking.append(mine)
            if len(asking) > 1:
                # Of those who ask for opposite things at once the last one has it.
                for each in asking:
                    each.with_others = True
            try:
                problems: dict[str, str] = await service.ask(
                    self._repo_of(job),
                    lambda reply: repository_messages.Steer((job,), how, reply),
                )
            finally:
                asking.remove(mine)
            held = self._world.rows.jobs[job]
            done = (held.held_at is not None) == on or held.state in TERMINAL
            self._world.referee.told(
                f"{job} {how}",
                holds=same or done or mine.with_others or job in problems,
            )

    async def _answer(self, service: Service, operation: Operation) -> None:
        """A person answers what an agent has asked."""
        job = self._job(operation.target)
        if job is None:
            return
        await service.ask(
            self._repo_of(job),
            lambda reply: repository_messages.AnswerJob(job, ANSWER, "answered", reply),
        )

    async def _approve(self, service: Service, operation: Operation) -> None:
        """A person allows what a job would do to the outside."""
        job = self._job(operation.target)
        if job is None:
            return
        approval = Approval(job, ("push",), "somebody", "simulation", 0.0)
        await service.ask(
            self._repo_of(job),
            lambda reply: repository_messages.ApproveJob(job, approval, reply),
        )
        rows = self._world.rows
        ended = rows.jobs[job].state in TERMINAL
        holds = ended or not held_back(rows.specs[job].authority, job)
        self._world.referee.told(f"{job} is approved", holds=holds)

    async def _deny(self, service: Service, operation: Operation) -> None:
        job = self._job(operation.target)
        if job is None:
            return
        await service.ask(
            self._repo_of(job),
            lambda reply: repository_messages.AnswerJob(job, None, "no", reply),
        )
        holds = self._world.rows.jobs[job].state in TERMINAL
        self._world.referee.told(f"{job} is denied", holds=holds)

    async def _edit(self, service: Service, operation: Operation) -> None:
        job = self._job(operation.target)
        if job is None:
            return
        repo = self._repo_of(job)
        held = self._world.rows.jobs[job]
        wanted: JobEdit = operation.value  # type: ignore[assignment]
        edit = edit_of(wanted, held.kind, f"/{repo}")
        await service.ask(
            repo, lambda reply: repository_messages.EditJob(job, edit, reply)
        )

    async def _hand_on(self, service: Service, operation: Operation) -> None:
        """What runs submits a job of its own, as a script of it would."""
        rows = self._world.rows
        running = [job for job in rows.jobs.values() if job.state in RESERVED]
        # Only of these it changes what becomes of them.
        running.sort(key=lambda job: job.kind != "dispatch-task")
        job = running[0] if running else None
        if job is None or job.fence is None:
            return
        [name] = [n for n, repo in self._world.repositories.items() if repo == job.repo]
        request = JobRequest(
            repo=name,
            argv=list(rows.specs[job.id].argv),
            read_only=True,
            parent=Parent(job.id, job.attempt, job.fence),
        )
        [accepted] = await service.admission.submit([request])
        self._world.referee.accepted(accepted.id)

    async def _retry(self, service: Service, operation: Operation) -> None:
        job = self.ids.get(operation.target)
        if job is None or self._world.rows.jobs[job].state not in TERMINAL:
            return
        [retried] = await service.admission.again.retry([job], "simulation")
        self._world.referee.accepted(retried.id)
        self.ids[operation.target] = retried.id

    def _job(self, name: str) -> str | None:
        """The id of a job that has not ended, as far as anybody can know."""
        rows = self._world.rows.jobs
        job = name if name in rows else self.ids.get(name)
        return job if job is not None and rows[job].state not in TERMINAL else None

    def _repo_of(self, job: str) -> str:
        return self._world.rows.jobs[job].repo

    # -- scopes, repositories, settings ----------------------------------------------

    async def _pause(self, service: Service, operation: Operation) -> None:
        on, jobs = operation.verb == "pause", bool(operation.value)
        name = repository_of(operation.target)
        if name is None:
            await service.mailbox.ask(
                lambda reply: supervisor_messages.SetPause(
                    operation.target, on, jobs, reply
                )
            )
            return
        repo = service.registry.named(name)
        await service.ask(
            repo.id, lambda reply: repository_messages.PauseHere(on, jobs, reply)
        )

    async def _drain(self, service: Service, operation: Operation) -> None:
        on = operation.verb == "drain"
        await service.mailbox.ask(
            lambda reply: supervisor_messages.SetPause(DRAIN, on, False, reply)
        )

    async def _policy(self, service: Service, operation: Operation) -> None:
        await set_policy(service, operation.value)  # type: ignore[arg-type]

    async def _enable(self, service: Service, operation: Operation) -> None:
        on = operation.verb == "enable"
        repo = service.registry.named(operation.target)
        await service.registry.enable(repo, on)
        actor = await service.open(repo.id)
        with suppress(MailboxClosed):
            actor.tell(repository_messages.SetEnabled(on))

    async def _relocate(self, service: Service, operation: Operation) -> None:
        """Say where it is by now."""
        name = operation.target
        await service.registry.relocate(name, self._world.places.paths[name])

    async def _remove(self, service: Service, operation: Operation) -> None:
        """Cancel what is active, then take the repository out."""
        repo = service.registry.named(operation.target)
        active = [
            job.id
            for job in self._world.rows.jobs.values()
            if job.repo == repo.id and job.state not in TERMINAL
        ]
        for job in active:
            self._world.referee.cancels(job)
        if active:
            await service.ask(
                repo.id,
                lambda reply: repository_messages.Cancel(tuple(active), None, reply),
            )
        for job in active:
            await self._world.until_ended(job)
        await service.registry.remove(repo)

    async def _limits(self, service: Service, operation: Operation) -> None:
        self._world.settings = operation.value  # type: ignore[assignment]
        await service.exchange(self._world.settings)

    async def _restart(self, service: Service, operation: Operation) -> None:
        if operation.value == "cancelled":
            for case in self._world.books.open_cases:
                case.cancelled = True
        service.stop(operation.value)  # type: ignore[arg-type]

    async def _take_over(self, service: Service, operation: Operation) -> None:
        """Start another runtime on the home, although this one still runs."""
        if not self._world.bound:  # of a bound agent nobody else has the socket
            service.over.set()

    # -- questions -------------------------------------------------------------------

    async def _look(self, service: Service, operation: Operation) -> None:
        await Looks(self._world, service).look()

    _verbs: ClassVar[dict[str, Verb]] = {
        "submit": _submit,
        "cancel": _cancel,
        **dict.fromkeys(_STEERING, _steer),
        "edit": _edit,
        "answer": _answer,
        "approve": _approve,
        "deny": _deny,
        "retry": _retry,
        "hand on": _hand_on,
        **dict.fromkeys(("pause", "resume"), _pause),
        **dict.fromkeys(("drain", "undrain"), _drain),
        "policy": _policy,
        **dict.fromkeys(("enable", "disable"), _enable),
        "move": _relocate,
        "remove": _remove,
        "limits": _limits,
        "restart": _restart,
        "take over": _take_over,
        "look": _look,
    }
