"""What can be asked of what agents used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.spending import MAX_SUMS, UsageReport, sum_of
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.moments import parse_day

if TYPE_CHECKING:
    from forge_actors.domain.spending import Group


class UsageControl(ControlBase):
    """The part of the port `Control` that is about usage."""

    async def usage(self, by: Group, since: str | None = None) -> UsageReport:
        moment = None
        if since is not None:
            moment = parse_day(since, self._clock.wall(), field="since")
        rows = self._store.read("usage_by", by, moment or 0.0, MAX_SUMS)
        [total] = self._store.read("usage_total", moment or 0.0)
        return UsageReport(
            by,
            None if moment is None else timestamp(moment),
            [sum_of(row) for row in rows],
            sum_of(total),
        )
