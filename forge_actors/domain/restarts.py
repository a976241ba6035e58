"""When a failed child is started again: the meanings of Erlang/OTP's supervisor.

`permanent` children are always restarted, `transient` ones only when they failed,
`temporary` ones never. More than `intensity` restarts within `period` seconds means the
supervisor itself fails. Source: the Erlang/OTP documentation of `supervisor`.
"""

from __future__ import annotations

from collections import deque
from typing import Literal

from msgspec import Struct

Restart = Literal["permanent", "transient", "temporary"]


class RestartPolicy(Struct, frozen=True):
    """How often children may be restarted: `intensity` times within `period` s."""

    intensity: int = 5
    period: float = 60.0


def wants_restart(restart: Restart, *, failed: bool) -> bool:
    """Whether a child of this type is started again after it ended."""
    return restart == "permanent" or (restart == "transient" and failed)


#: How a child that failed is restarted; `aside`: not at all, until somebody says so.
Stage = Literal["usual", "careful", "aside"]


class RestartHistory:
    """The restarts of one supervisor within its period."""

    def __init__(self, policy: RestartPolicy) -> None:
        self.policy = policy
        self._times: deque[float] = deque(maxlen=policy.intensity + 1)

    def allow(self, now: float) -> bool:
        """Record a restart at `now`; False if it is one too many."""
        self._times.append(now)
        while self._times and self._times[0] < now - self.policy.period:
            self._times.popleft()
        return len(self._times) <= self.policy.intensity


class Escalation:
    """What is done about one child that fails, and fails again.

    It is restarted as usual, as often as the policy allows; then, as often again, with
    care: what makes it fail is left out where that can be told. Then it is left alone.
    """

    def __init__(self, policy: RestartPolicy) -> None:
        self.stage: Stage = "usual"
        self._history = RestartHistory(policy)

    def failed(self, now: float) -> Stage:
        """The stage in which it is restarted now."""
        if not self._history.allow(now):
            self.stage = "careful" if self.stage == "usual" else "aside"
            self._history = RestartHistory(self._history.policy)
        return self.stage
