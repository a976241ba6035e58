"""Stretches in which something held for many jobs, as events tell of them."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from forge_actors.domain.scopes import EVERYTHING, provider_of, repository_of
from forge_actors.domain.timeline import MAX_BANDS, Band

if TYPE_CHECKING:
    from forge_actors.domain.events import Event

DOWN, PRESSURE, DRAIN, PAUSE, CLOSED = "down", "pressure", "drain", "pause", "closed"
POLICY = "policy"
#: The kinds of event that begin a stretch, and those that end it.
_BEGIN = {
    "pressure_began": PRESSURE,
    "drain_began": DRAIN,
    "paused": PAUSE,
    "provider_closed": CLOSED,
}
_END = {
    "pressure_ended": PRESSURE,
    "drain_ended": DRAIN,
    "resumed": PAUSE,
    "provider_opened": CLOSED,
}


class Bands:
    """A fold over the events that are of no job."""

    def __init__(self, since: float, until: float) -> None:
        self._since, self._until = since, until
        self._told: deque[Band] = deque(maxlen=MAX_BANDS)
        #: Those that go on, by kind and scope: since when, and why.
        self._open: dict[tuple[str, str], tuple[float, str | None, str | None]] = {}
        self._last: float | None = None

    def apply(self, event: Event) -> None:
        kind, data, at = event.kind, event.data, event.at
        if kind == "runtime_started":
            if self._last is not None:
                # If it did not stop: it died, somewhen behind the last that it told.
                self._begin(DOWN, "", self._last, "it did not stop in order", None)
            for ended in ((PRESSURE, ""), (DRAIN, ""), (DOWN, "")):
                self._end(ended, at)
        elif kind == "runtime_stopped":
            self._begin(DOWN, "", at, "it was stopped", None)
        elif kind == "policy_changed":
            self._end((POLICY, ""), at)
            if data["mode"] != "normal":
                self._begin(POLICY, "", at, _reason(kind, "", data), None)
        elif kind in _BEGIN:
            scope = str(data.get("scope") or data.get("provider") or "")
            repo = repository_of(scope)
            self._begin(_BEGIN[kind], scope, at, _reason(kind, scope, data), repo)
        elif kind in _END:
            scope = str(data.get("scope") or data.get("provider") or "")
            self._end((_END[kind], scope), at)
        self._last = at

    def _begin(
        self, kind: str, scope: str, at: float, reason: str | None, repo: str | None
    ) -> None:
        self._open.setdefault((kind, scope), (at, reason, repo))

    def _end(self, which: tuple[str, str], at: float) -> None:
        if which in self._open:
            began, reason, repo = self._open.pop(which)
            self._add(which[0], began, at, reason, repo)

    def _add(
        self,
        kind: str,
        began: float,
        ended: float | None,
        reason: str | None,
        repo: str | None,
    ) -> None:
        if began >= self._until or (ended is not None and ended <= self._since):
            return
        to = None if ended is None else round(ended - self._since, 3)
        self._told.append(Band(kind, round(began - self._since, 3), to, reason, repo))

    def repositories(self) -> set[str]:
        """The ids of those that some are for."""
        known = {band.repo for band in self._told}
        known |= {repo for _, _, repo in self._open.values()}
        return {repo for repo in known if repo is not None}

    def told(self) -> list[Band]:
        """All of them, those that go on last."""
        for (kind, _), (began, reason, repo) in self._open.items():
            self._add(kind, began, None, reason, repo)
        self._open.clear()
        return list(self._told)


def _reason(kind: str, scope: str, data: dict[str, object]) -> str | None:
    if kind == "paused":
        provider = provider_of(scope)
        whose = "everything" if scope == EVERYTHING else provider or "a repository"
        return f"{whose} is paused"
    if kind == "provider_closed":
        return f"{scope} is closed: {data.get('reason')}"
    if kind == "policy_changed":
        work = f" for work {data['work']}" if "work" in data else ""
        return f"{data['mode']}{work}"
    return str(data["reason"]) if "reason" in data else None
