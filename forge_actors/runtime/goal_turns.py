"""Turns: the jobs of a goal, each of which goes on where the ones before have worked.

An agent goes on with its session, if there is one; else another one is begun in the
same worktree. The check runs there too. A job is looked up by its request id before
anything else, so it is made once, whatever became of what it was made from.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from msgspec import MsgspecError, structs

from forge_actors.domain.agents import Budget
from forge_actors.domain.deadlines import default_execution, parse_budget
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.rounds import FEEDBACK, ROUND, Marks, TurnRequest, plain
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.again import Given, NoSession
from forge_actors.runtime.checks import folder_of, likeness
from forge_actors.runtime.fields import kind_of
from forge_actors.runtime.goal_words import feedback_of, prompt_anew, prompt_of
from forge_actors.runtime.orders import log_base
from forge_actors.runtime.prompts import PromptFolder
from forge_actors.runtime.views import receipt_of
from forge_actors.runtime.worktree_owners import worktree_of

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.requests import Accepted, JobRequest
    from forge_actors.domain.rounds import Turn
    from forge_actors.domain.workflow_steps import StepEnd
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.control_following import FollowingControl

N = TypeVar("N", int, float)

#: Seconds that a job has at least, so that it can say that its time is over.
LEAST = 1.0
#: The kind of an agent's job that says none.
_AGENT_KIND = "agent-run"


class Turns:
    """Those of one runtime."""

    def __init__(
        self,
        store: SqliteStore,
        clock: Clock,
        home: Path,
        submit: Callable[[Sequence[JobRequest]], Awaitable[list[Accepted]]],
        control: Callable[[], FollowingControl],
    ) -> None:
        self._store = store
        self._clock = clock
        self._home = str(home)
        self._prompts = PromptFolder(home)
        self._submit = submit
        self._control = control

    async def submit(self, request: TurnRequest) -> str:
        """The job of a turn, which is durable.

        Raises:
            ForgeError: as `Control.submit`.
        """
        assert request.request_id is not None, request
        known = await self._known(request.request_id)
        if known is not None:
            return known
        turn = request.turn
        made = self._limited(plain(request), turn)
        feedback = None
        if turn.check is not None:
            feedback = feedback_of(self._log(turn.check))
        env = {ROUND: str(turn.number)}
        if feedback is not None and made.agent is None:
            digest = self._prompts.keep(feedback, field="prompt")
            env[FEEDBACK] = self._prompts.path(digest)
        made = structs.replace(made, env={**made.env, **env})
        made = await self._placed(made, turn)
        if turn.role == "act" and made.agent is not None and turn.before:
            gone_on = await self._go_on(made, turn, feedback, env)
            if gone_on is not None:
                return gone_on
            made = structs.replace(made, prompt=prompt_anew(made, turn, feedback))
        [accepted] = await self._submit([made])
        return accepted.id

    async def marks(self, job: str, turn: Turn, end: StepEnd) -> Marks:
        """What a job that has ended so left, besides its end."""
        if turn.role == "act":
            [(cost, tokens)] = self._store.read("usage_of_job", job)
            return Marks(tokens=tokens, cost=cost)
        nothing = end.validation == "infrastructure_failure"
        if end.state != "failed" or nothing:
            return Marks()
        rows = self._store.read("view_job", job)
        try:
            receipt = receipt_of(rows[0]) if rows else None
            spec = spec_from((rows[0][5],)) if rows else None
        except (MsgspecError, RecursionError):
            return Marks()
        if receipt is None or spec is None:
            return Marks()
        found = await likeness(self._log(job), self._folder(spec, job))
        if found is None:
            return Marks()
        return Marks(likeness=f"{found}:{receipt.exit_code}:{receipt.signal}")

    # -- the parts -------------------------------------------------------------------

    async def _known(self, request_id: str) -> str | None:
        """The job that was made by this request before."""
        for query in ("by_request", "forgotten_request"):
            rows = self._store.read_pending(query, request_id)
            if rows:
                await self._store.save([]).wait()  # it may not be durable yet
                return str(rows[0][0])
        return None

    async def _go_on(
        self, made: JobRequest, turn: Turn, feedback: str | None, env: dict[str, str]
    ) -> str | None:
        """Have the agent go on with its session; None if there is none."""
        last = turn.before[0]
        mine = worktree_of(self._store, last)
        if not self._store.read("job_state", last) or mine != made.in_worktree:
            return None  # what it knows is not there any more
        assert made.request_id is not None, made
        given = Given(
            request_id=made.request_id,
            name=made.name,
            env=env,
            waits=_parsed(made.queue_timeout, "queue_timeout"),
            seconds=_seconds(made),
            budget=Budget(made.budget_cost, made.budget_tokens) or None,
        )
        asked = prompt_of(made, turn, feedback)
        try:
            followed = await self._control().go_on(last, asked, made.origin, given)
        except NoSession:
            return None
        return followed.id

    async def _placed(self, made: JobRequest, turn: Turn) -> JobRequest:
        """The same where the ones before have worked, if that is a worktree."""
        checks = turn.role == "check"
        for job in turn.before[:1] if checks else turn.before:
            owner = worktree_of(self._store, job)
            known = None if owner is None else self._store.worktree(owner)
            if owner is None or known is None:
                continue  # in the checkout, or it came to no worktree
            if known.state == "removed":
                try:
                    await self._control().restore_worktree(owner)
                except NotFound:
                    continue  # it was never ready, or nothing is left of it
                except Refused as error:
                    problem = f"that of job {owner} cannot be made again: {error}"
                    raise InvalidInput("worktree", problem) from None
            return structs.replace(
                made, in_worktree=owner, isolate=None, branch=None, base=None
            )
        if checks:
            self._check_kept(turn)
        return made

    def _check_kept(self, turn: Turn) -> None:
        """Look at nothing else in place of the work that is to be checked.

        Raises:
            InvalidInput: nobody knows any more where that was done, or it is gone.
        """
        last = turn.before[0]
        if not self._store.read_pending("job_spec", last):
            problem = f"nothing is known any more of job {last}, whose work it checks"
            raise InvalidInput("worktree", problem)
        if (owner := worktree_of(self._store, last)) is not None:
            problem = f"that of job {owner} is gone, and nothing is left to check"
            raise InvalidInput("worktree", problem)

    def _limited(self, made: JobRequest, turn: Turn) -> JobRequest:
        """The same, within what the goal may still use."""
        seconds = turn.seconds
        if turn.until is not None:
            seconds = max(LEAST, turn.until - self._clock.wall())
        if seconds is not None:
            waits = _parsed(made.queue_timeout, "queue_timeout")
            made = structs.replace(
                made,
                timeout=_least(_seconds(made), seconds),
                queue_timeout=_least(waits, seconds),
            )
        if turn.role == "check" or made.agent is None:
            return made
        return structs.replace(
            made,
            budget_tokens=_least(made.budget_tokens, turn.tokens),
            budget_cost=_least(made.budget_cost, turn.cost),
        )

    def _folder(self, spec: JobSpec, job: str) -> str:
        return folder_of(self._home, self._store, spec, job)

    def _log(self, job: str) -> str:
        rows = self._store.read("view_job", job)
        return log_base(self._home, job, rows[0][7] if rows else 1)


def _seconds(request: JobRequest) -> float | None:
    """How long a job may run if nothing else ends it."""
    if request.timeout is not None:
        return _parsed(request.timeout, "timeout")
    if request.agent is not None:
        request = structs.replace(request, kind=_AGENT_KIND)
    return default_execution(kind_of(request, ""))


def _parsed(value: str | float | None, field: str) -> float | None:
    return None if value is None else parse_budget(value, field=field)


def _least(one: N | None, other: N | None) -> N | None:
    if one is None or other is None:
        return other if one is None else one
    return min(one, other)
