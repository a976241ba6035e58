"""The part of the client that is about a home as a whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from forge_actors.domain.cleaning import CleanClass
from forge_actors.domain.maintenance import CleanResult
from forge_actors.domain.requests import convert
from forge_actors.domain.spending import Group, UsageReport
from forge_actors.domain.timeline import Timeline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.client.sync import Parameters


class HomeCalls(ABC):
    """What agents used, what ran when, and the clean-up."""

    @abstractmethod
    async def _call(
        self, method: str, *path: str, body: object = None, query: Parameters = ()
    ) -> Any: ...

    async def usage(
        self, by: Group = "day", *, since: str | None = None
    ) -> UsageReport:
        """What agents used since a moment, a day in UTC, or a span that ends now."""
        query = [("by", by), ("since", since)]
        return convert(await self._call("GET", "usage", query=query), UsageReport)

    async def timeline(
        self,
        since: str | None = None,
        until: str | None = None,
        *,
        repo: Sequence[str] = (),
        limit: int | None = None,
    ) -> Timeline:
        """What ran when, on which tokens; of the last hour, if nothing else is said."""
        query = [("since", since), ("until", until), ("limit", limit)]
        query += [("repo", name) for name in repo]
        return convert(await self._call("GET", "timeline", query=query), Timeline)

    async def clean(
        self, *, dry_run: bool = False, classes: Sequence[CleanClass] = ()
    ) -> CleanResult:
        """Run the clean-up, or say what it would remove, and wait for its end."""
        body = {"dry_run": dry_run, "classes": list(classes)}
        return convert(await self._call("POST", "clean", body=body), CleanResult)
