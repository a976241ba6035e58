"""The release that a service runs, for as long as it is the active one of its home."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Literal

import trio

from forge_actors.domain.errors import ReleaseDamaged
from forge_actors.domain.events import Event
from forge_actors.edges.gateway.removal import WRITTEN, next_event, watching
from forge_actors.runtime.release import may_serve, read_active

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.domain.releases import ActiveRelease, Release

log = logging.getLogger(__name__)

Coherence = Literal["pass", "fail", "not_observed"]


def serve_release(home: Path, release: Release) -> ServedRelease:
    """Serve a home by this release, which becomes the active one if it may.

    Raises:
        ReleaseRefused: another release is the active one, and is still there.
        ReleaseDamaged: what is active cannot be read.
        InvalidInput: the home takes no files.
    """
    active, new = may_serve(home, release)
    if new:
        log.info("release %s is the active one of %s now", release, home)
    return ServedRelease(home, release, active, new=new)


class ServedRelease:
    """Looks at the one file that says which release is the active one."""

    def __init__(
        self, home: Path, release: Release, active: ActiveRelease, *, new: bool
    ) -> None:
        self._home = home
        self.release = release
        #: As it was when the service began.
        self.active = active
        #: Whether it became the active one by this start.
        self.new = new
        #: What was made active instead.
        self.successor: ActiveRelease | None = None
        #: Called once there is one.
        self.superseded: Callable[[ActiveRelease], None] = lambda _: None
        self._readable = True

    @property
    def coherence(self) -> Coherence:
        if self.successor is not None:
            return "fail"
        return "pass" if self._readable else "not_observed"

    def check(self) -> None:
        """Look whether it is still the active one."""
        if self.successor is not None:
            return
        try:
            now = read_active(self._home)
        except ReleaseDamaged as error:
            if self._readable:
                log.error("%s", error)
            self._readable = False
            return
        # A file that is gone says nothing of another release.
        self._readable = now is not None
        if now is not None and not self.active.is_still(now):
            self.successor = now
            self.superseded(now)

    async def watch(self) -> None:
        """Return when another one serves: check when a file of the home was written.

        Where the system cannot tell, whoever makes a release active tells the service.
        """
        try:
            with watching(str(self._home), WRITTEN) as events:
                self.check()  # it may have been written before
                while self.successor is None:
                    await next_event(events)
                    self.check()
        except OSError as error:
            log.warning("the active release cannot be watched here: %s", error)
            await trio.sleep_forever()


def activated(active: ActiveRelease, now: float) -> Event:
    """The event of a release that has become the active one."""
    data = _data(active)
    if active.previous is not None:
        data["previous"] = active.previous.id
    return Event("release_activated", now, data=data)


def superseded(successor: ActiveRelease, now: float) -> Event:
    """The event of a service that sees another release in its place."""
    return Event("release_superseded", now, data=_data(successor))


def _data(active: ActiveRelease) -> dict[str, object]:
    return {
        "release": active.release.id,
        "path": active.release.path,
        "revision": active.revision,
    }
