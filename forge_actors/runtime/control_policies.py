"""What can be asked of the policy: which it is, and another one."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.actors.supervisor_messages import SetPolicy
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.policies import (
    Policy,
    PolicyView,
    check_request,
    describe,
)
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.workflow_steps import ACTIVE
from forge_actors.runtime.control_epics import EpicControl
from forge_actors.runtime.control_workflows import WorkflowControl
from forge_actors.runtime.schedule_requests import moment_of
from forge_actors.runtime.views import shown_text

if TYPE_CHECKING:
    from forge_actors.domain.policies import PolicyRequest
    from forge_actors.edges.sqlite.store import SqliteStore


class PolicyControl(WorkflowControl, EpicControl):
    """The part of the port `Control` that is about the policy."""

    async def policy(self) -> PolicyView:
        return policy_view(self._store)

    async def set_policy(
        self, request: PolicyRequest, *, narrows: bool = False
    ) -> PolicyView:
        check_request(request)
        work = None if request.work is None else self._work_meant(request.work)
        wanted = Policy(
            request.mode,
            work,
            # It is shown in many places: what is secret in it is not kept at all.
            shown_text(request.reason, self._roots),
            until=_until(request, self._clock.wall()),
        )
        await self._supervisor.ask(
            lambda reply: SetPolicy(wanted, request.revision, narrows, reply)
        )
        return policy_view(self._store)

    def _work_meant(self, name: str) -> str:
        """The id of a work: as `workflow show` takes it, or as `jobs` shows it.

        Raises:
            NotFound: there is none, and nothing would be started at all.
        """
        if self._store.read("job_of_work", name):
            return name
        for meant in (self._workflow_meant, self._epic_meant):
            with suppress(NotFound):
                return meant(name)
        raise NotFound(f"there is no workflow and no EPIC run {name!r}")


def policy_view(store: SqliteStore) -> PolicyView:
    """The policy that is durable, as readers see it."""
    rows = store.read("policy")
    policy = Policy(*rows[0]) if rows else Policy()
    return PolicyView(
        policy.mode,
        policy.work,
        policy.reason,
        timestamp(policy.since) if policy.revision else None,
        None if policy.until is None else timestamp(policy.until),
        policy.revision,
        "" if policy.mode == "normal" else describe(policy) + _over(store, policy),
    )


def _over(store: SqliteStore, policy: Policy) -> str:
    """That nothing is to be expected of the one work any more, if that is so."""
    rows = store.read("workflow_state", policy.work)
    if rows and rows[0][0] not in ACTIVE:
        return f"; that work has ended: it is {rows[0][0]}"
    if (policy.work, 0) in store.read("epic_goes_on", policy.work):
        return "; that run of an EPIC has ended"
    return ""


def _until(request: PolicyRequest, wall: float) -> float | None:
    if request.for_ is not None:
        span = parse_duration(request.for_, field="for")
        if not span:
            raise InvalidInput("for", "is no time at all")
        return wall + span
    if request.until is None:
        return None
    moment = moment_of(request.until, None, field="until")
    if moment <= wall:
        raise InvalidInput("until", f"{request.until!r} has passed")
    return moment
