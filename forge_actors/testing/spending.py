"""The part of the fake `Control` that is about usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.spending import UsageReport, summed

if TYPE_CHECKING:
    from forge_actors.domain.spending import Group


class FakeSpending:
    """Answers with `usage_report`, whatever group and time it is asked for."""

    def __init__(self) -> None:
        self.usage_report = UsageReport("day", None, [], summed(None, []))

    async def usage(self, by: Group, since: str | None = None) -> UsageReport:
        return structs.replace(self.usage_report, by=by, since=since)
