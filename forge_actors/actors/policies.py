"""The policy, as the supervisor holds it: saved, told, and ended on time."""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors.alarm import Alarm
from forge_actors.actors.repository_messages import PolicyChanged
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.policies import OVER, Policy, changed, ended
from forge_actors.domain.policy_changes import policy_set

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.actors.repository_messages import Message
    from forge_actors.actors.supervisor_context import Context
    from forge_actors.actors.supervisor_messages import SetPolicy


class Policies:
    """Only the supervisor's task holds one. `run` is the task of its alarm.

    `tell` tells every repository that is awake.
    """

    def __init__(
        self,
        context: Context,
        ring: Callable[[], None],
        tell: Callable[[Message], None],
    ) -> None:
        self._clock, self._store = context.clock, context.store
        self._tell = tell
        self.policy: Policy = context.policy
        #: Changes of it that are not durable, and who is answered when they are.
        self._unsaved = 0
        self._askers: list[Callable[[], object]] = []
        self._alarm = Alarm(ring, math.inf)
        self.run, self.stop = self._alarm.run, self._alarm.stop
        self.look()

    @property
    def halts(self) -> bool:
        """Nothing at all is granted."""
        return self.policy.halts

    def told(self) -> PolicyChanged:
        """What a repository is to know of it, its last moment as runtimes count."""
        policy = self.policy
        if policy.starts:
            return PolicyChanged(None)
        if policy.until is not None:
            until = policy.until - self._clock.ahead()
            policy = structs.replace(policy, until=until)
        return PolicyChanged(policy)

    def set(self, asked: SetPolicy) -> bool:
        """Have another one in force; False if it is the same, or that is refused."""
        wanted, reply = asked.wanted, asked.reply
        found = changed(
            self.policy,
            wanted,
            self._clock.now(),
            revision=asked.revision,
            narrows=asked.narrows,
        )
        if isinstance(found, ForgeError):
            reply.refuse(found)
            return False
        if found == self.policy:
            self._answer(lambda: reply.answer(found))
            return False
        self._become(found, wanted.reason, lambda: reply.answer(found))
        return True

    def look(self) -> bool:
        """Its last moment may have come; True if it is another one now."""
        if not self.policy.is_over(self._clock.wall()):
            self._wait()
            return False
        self._become(ended(self.policy, self._clock.now()), OVER)
        return True

    def _become(
        self,
        policy: Policy,
        reason: str,
        then: Callable[[], object] | None = None,
    ) -> None:
        change = policy_set(policy, self.policy, self._clock.now(), reason)
        self.policy = policy
        self._unsaved += 1
        self._store.save([change], then=partial(self._saved, then))
        self._tell(self.told())
        self._wait()

    def _answer(self, answer: Callable[[], object]) -> None:
        """Answer once the changes that somebody else made are durable."""
        if self._unsaved:
            self._askers.append(answer)
        else:
            answer()

    def _saved(self, then: Callable[[], object] | None) -> None:
        self._unsaved -= 1
        if then is not None:
            then()
        if not self._unsaved:
            askers, self._askers = self._askers, []
            for answer in askers:
                answer()

    def _wait(self) -> None:
        until = self.policy.until
        ahead = math.inf if until is None else max(0.0, until - self._clock.wall())
        self._alarm.set(trio.current_time() + ahead)
