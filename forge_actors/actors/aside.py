"""Aside: what becomes of repositories whose actors fail, and fail again.

One is restarted as usual, then with care, then not at all until somebody says so. What
runs of it meanwhile is watched by a caretaker. A part of the supervisor, whose task
alone calls it.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from forge_actors.actors.caretaker import Caretaker
from forge_actors.actors.supervisor_messages import CareEnded
from forge_actors.domain.changes import SetAside
from forge_actors.domain.errors import (
    MailboxClosed,
    RestartIntensityReached,
    SetAsideError,
    StoreFailed,
)
from forge_actors.domain.events import Event
from forge_actors.domain.poison import Poison, cause, only
from forge_actors.domain.restarts import Escalation

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.actors.supervisor_messages import Message
    from forge_actors.actors.tokens import Grants
    from forge_actors.domain.launch import Receipt
    from forge_actors.domain.recovery import StopReason
    from forge_actors.domain.restarts import RestartHistory

log = logging.getLogger(__name__)


class Aside:
    """The repositories whose actors have failed."""

    def __init__(
        self,
        context: Context,
        history: RestartHistory,
        grants: Grants,
        nursery: trio.Nursery,
        keep_receipt: Callable[[Receipt], None],
        supervisor: Mailbox[Message],
    ) -> None:
        self._context = context
        #: Failures for lack of a store, which all repositories need.
        self._history = history
        self._grants = grants
        self._nursery = nursery
        self._keep_receipt = keep_receipt
        self._supervisor = supervisor
        self._failures: dict[str, Escalation] = {}
        #: How often any of them has failed.
        self.failures = 0
        #: Why no actor is started.
        self._why: dict[str, str] = {}
        self._caretakers: dict[str, list[Caretaker]] = {}

    @property
    def watches(self) -> bool:
        """Something runs that no repository's actor owns."""
        return bool(self._caretakers)

    def is_careful(self, repo: str) -> bool:
        """Whether its actor is to set aside what makes it fail."""
        failures = self._failures.get(repo)
        return failures is not None and failures.stage == "careful"

    def check(self, repo: str) -> None:
        """Raise SetAsideError if no actor is to be started."""
        if repo in self._why:
            raise SetAsideError(
                f"the repository was set aside ({self._why[repo]});"
                " forge-actors repo enable with its name tries again"
            )

    def failed(self, repo: str, error: Exception) -> None:
        """Its actor failed: decide whether and how it is restarted.

        Raises:
            RestartIntensityReached: it was one failure too many for lack of a store.
        """
        log.error("the actor of repository %s failed", repo, exc_info=error)
        self.failures += 1
        now = trio.current_time()
        if only(error, StoreFailed):
            policy = self._history.policy
            if not self._history.allow(now):
                raise RestartIntensityReached(
                    f"repository actors failed more than {policy.intensity}"
                    f" times within {policy.period:.0f} s"
                ) from error
            return
        failures = self._failures.get(repo)
        if failures is None:
            failures = self._failures[repo] = Escalation(self._context.restarts)
        if failures.failed(now) == "aside":
            self._set_aside(repo, cause(error))

    def rested(self, repo: str) -> None:
        """Its actor has ended by itself: all is well again."""
        self._failures.pop(repo, None)

    def _set_aside(self, repo: str, error: str) -> None:
        self._why[repo] = error
        now = self._context.clock.now()
        event = Event("repository_set_aside", now, repo, data={"reason": error})
        self._context.store.save([SetAside(Poison(repo, error, now), event)])
        caretaker = Caretaker(
            self._grants.ownerless(repo),
            self._context.launcher,
            self._context.clock,
            self._keep_receipt,
        )
        self._caretakers.setdefault(repo, []).append(caretaker)
        self._nursery.start_soon(self._take_care, repo, caretaker)

    @trio.lowlevel.enable_ki_protection
    async def _take_care(self, repo: str, caretaker: Caretaker) -> None:
        await caretaker.run()
        with suppress(MailboxClosed):
            self._supervisor.tell(CareEnded(repo))

    def care_ended(self, repo: str) -> None:
        """The oldest of its caretakers has ended: they do in their order."""
        caretakers = self._caretakers[repo]
        caretakers.pop(0)
        if not caretakers:
            del self._caretakers[repo]

    async def take_back(self, repo: str) -> None:
        """Let an actor be started again."""
        self._why.pop(repo, None)
        self._failures.pop(repo, None)
        for caretaker in self._caretakers.get(repo, ()):
            await caretaker.let_go()

    async def stop(self, reason: StopReason) -> None:
        """End what runs, or let go of it."""
        for caretaker in [c for each in self._caretakers.values() for c in each]:
            if reason == "detached":
                await caretaker.let_go()
            else:
                caretaker.stop()
