"""The part of the fake `Control` that is about what ran when."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.timeline import Timeline

if TYPE_CHECKING:
    from forge_actors.domain.timeline import TimelineQuery


class FakeTimeline:
    """Answers with `timeline_told`, and notes what it was asked for."""

    def __init__(self) -> None:
        self.timeline_told = Timeline(
            since="2026-01-02T02:04:05.000Z",
            until="2026-01-02T03:04:05.000Z",
            epoch=1767319445.0,
            seconds=3600.0,
            live=True,
            repositories=[],
            runs=[],
            waits=[],
            depths=[],
            bands=[],
        )
        self.timeline_queries: list[TimelineQuery] = []

    async def timeline(self, query: TimelineQuery) -> Timeline:
        self.timeline_queries.append(query)
        return self.timeline_told
