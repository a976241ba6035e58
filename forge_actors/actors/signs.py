"""Signs of life: whether what runs was heard of, and who asks if it was not.

They renew the leases of what runs. Leases without any are unconfirmed, which frees
nothing: they end when what holds them is proven gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    from forge_actors.domain.ports import Launcher

#: Seconds of silence after which a safety pass asks for a sign of life.
PING_SECONDS = 5.0
#: Seconds for which a sign of life confirms a lease.
LEASE_SECONDS = 30.0


class SignsOfLife:
    """Those of one launcher. Only the supervisor's task holds one."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher
        #: When one was asked for that has not come, in `trio.current_time()`.
        self._asked_at: float | None = None

    def ask(self, *, runs: bool) -> None:
        """Ask for one if anything runs, unless there was one just now."""
        now = trio.current_time()
        if not self._is_awaited:
            self._asked_at = None
        if runs and now - self._launcher.heard_at >= PING_SECONDS:
            self._launcher.ping()
            if self._asked_at is None:
                self._asked_at = now

    def silence(self, *, runs: bool) -> float | None:
        """For how long nothing was heard of what runs, if that is too long."""
        if not runs or not self._is_awaited:
            return None
        silence = trio.current_time() - self._launcher.heard_at
        return silence if silence > LEASE_SECONDS else None

    @property
    def _is_awaited(self) -> bool:
        return self._asked_at is not None and self._launcher.heard_at < self._asked_at
