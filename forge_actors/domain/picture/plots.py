"""The rows of a timeline as drawings: bars of attempts, and how many jobs waited.

Places across are parts of the width in per cent, so a drawing is as wide as there is
room, and its text stays as large as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.picture.marks import (
    REASONS,
    band_told,
    look,
    plain,
    title,
    told,
    waits_for,
)
from forge_actors.domain.picture.markup import escape, hint, tag
from forge_actors.domain.picture.ticks import ticks

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.timeline import Band, Depth, Run, Timeline

#: Pixels of one row and of the bar in it; of the drawing of what waited.
ROW, BAR, WAITING = 20, 16, 36
#: A bar of less than this part of the width has no text in it, as that would be cut.
LEAST_LABEL = 0.02


class Plots:
    """Draws parts of one timeline, all over the same time."""

    def __init__(self, timeline: Timeline) -> None:
        self._timeline = timeline
        self._ticks = ticks(timeline.epoch, timeline.seconds)
        self._bands = timeline.bands

    def axis(self) -> str:
        """The times below which everything else is."""
        texts = []
        for at, text in self._ticks:
            part = at / self._timeline.seconds
            anchor = "start" if part < 0.03 else "end" if part > 0.97 else "middle"
            texts.append(
                tag("text", escape(text), x=_per_cent(part), y=13, text_anchor=anchor)
            )
        return tag("svg", *texts, height=18, role="img", aria_label="times, UTC")

    def rows(
        self,
        label: str,
        runs: Sequence[Run],
        row: Callable[[Run], int],
        count: int,
        *,
        repo: str | None = None,
    ) -> str:
        """Bars, each in its row; behind them what held for all, or for `repo` too."""
        stripes = (
            tag("rect", class_="row", y=n * ROW, width="100%", height=ROW - 1)
            for n in range(count)
        )
        height = count * ROW
        bars = (self._bar(run, row(run) * ROW) for run in runs if row(run) < count)
        return tag(
            "svg",
            *stripes,
            *self._behind(height, repo),
            *bars,
            height=height,
            role="img",
            aria_label=f"{label}: {len(runs)} attempts",
        )

    def waiting(self, depths: Sequence[Depth]) -> tuple[str, float]:
        """How many jobs waited, one reason above another; and how many at most."""
        parts = max(len(depth.jobs) for depth in depths)
        floor = [0.0] * parts
        tops = [sum(depth.jobs[n] for depth in depths) for n in range(parts)]
        most = max([*tops, 1e-9])
        areas = []
        order = list(REASONS)
        for depth in sorted(depths, key=lambda each: _place(order, each.reason)):
            ceiling = [a + b for a, b in zip(floor, depth.jobs, strict=True)]
            areas.append(
                tag(
                    "path",
                    hint([waits_for(depth.reason)]),
                    class_=REASONS.get(depth.reason, "w1"),
                    d=_area(floor, ceiling, most),
                )
            )
            floor = ceiling
        inner = tag(
            "svg",
            *areas,
            viewBox=f"0 0 {parts} {WAITING}",
            preserveAspectRatio="none",
            width="100%",
            height=WAITING,
        )
        drawn = tag(
            "svg",
            *self._behind(WAITING, depths[0].repo),
            inner,
            height=WAITING,
            role="img",
            aria_label=f"{plain(depths[0].repo)}: waiting jobs, at most {most:.0f}",
        )
        return drawn, most

    def _behind(self, height: int, repo: str | None) -> list[str]:
        """What holds for all that is drawn: stretches, and the lines of the axis."""
        behind = [
            self._stretch(band, height)
            for band in self._bands
            if band.repo is None or band.repo == repo
        ]
        for at, _ in self._ticks:
            x = _per_cent(at / self._timeline.seconds)
            behind.append(tag("line", class_="grid", x1=x, x2=x, y1=0, y2=height))
        left_out = self._timeline.complete_from
        if left_out > 0:
            behind.append(
                tag(
                    "rect",
                    hint(["not everything before this is shown"]),
                    class_="hidden",
                    width=_per_cent(left_out / self._timeline.seconds),
                    height=height,
                )
            )
        return behind

    def _stretch(self, band: Band, height: int) -> str:
        x, width = self._placed(band.began, band.ended)
        return tag(
            "rect",
            hint(band_told(self._timeline, band)),
            class_=f"band {plain(band.kind)}",
            x=_per_cent(x),
            width=_per_cent(width),
            height=height,
        )

    def _bar(self, run: Run, y: int) -> str:
        x, width = self._placed(run.began, run.ended)
        shown = look(run)
        inner = [
            hint(told(self._timeline, run)),
            tag("rect", width="100%", height=BAR, rx=2),
        ]
        for began, ended in run.suspended:
            inner.append(self._still(run, began, ended))
        if width >= LEAST_LABEL:
            text = f"{shown.sign} {title(run)}".strip()
            inner.append(tag("text", escape(text), x=4, y=12))
        return tag(
            "svg",
            tag("g", *inner),
            class_=f"run {shown.style}",
            x=_per_cent(x),
            y=y + (ROW - 1 - BAR) / 2,
            width=_per_cent(width),
            height=BAR,
        )

    def _still(self, run: Run, began: float, ended: float | None) -> str:
        x, width = self._placed(run.began, run.ended)
        left, part = self._placed(began, ended)
        whole = max(width, 1e-9)
        return tag(
            "rect",
            class_="still",
            x=_per_cent(max(left - x, 0.0) / whole),
            width=_per_cent(part / whole),
            y=BAR / 4,
            height=BAR / 2,
        )

    def _placed(self, began: float | None, ended: float | None) -> tuple[float, float]:
        """Where something begins and how wide it is, as parts of the width."""
        whole = self._timeline.seconds
        first = min(max(began or 0.0, 0.0), whole)
        last = min(max(whole if ended is None else ended, first), whole)
        return first / whole, (last - first) / whole


def _place(order: Sequence[str], reason: str) -> int:
    return order.index(reason) if reason in order else len(order)


def _area(floor: Sequence[float], ceiling: Sequence[float], most: float) -> str:
    """The outline between two rows of numbers, a step for each of them."""

    def y(value: float) -> str:
        return f"{WAITING * (1 - value / most):.2f}".rstrip("0").rstrip(".")

    there = [f"V{y(top)}H{n + 1}" for n, top in enumerate(ceiling)]
    back = [f"V{y(low)}H{n}" for n, low in reversed(list(enumerate(floor)))]
    return f"M0 {y(floor[0])}{''.join(there)}{''.join(back)}Z"


def _per_cent(part: float) -> str:
    return f"{part * 100:.3f}".rstrip("0").rstrip(".") + "%"
