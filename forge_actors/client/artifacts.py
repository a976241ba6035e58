"""The part of the client that is about artifacts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from forge_actors.domain.artifacts import Artifacts
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator

    from forge_actors.client.answers import Answer
    from forge_actors.client.sync import Parameters


class ArtifactCalls(ABC):
    """Files that were collected from jobs."""

    @abstractmethod
    async def _call(
        self, method: str, *path: str, body: object = None, query: Parameters = ()
    ) -> Any: ...

    @abstractmethod
    async def _send(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: object = None,
        query: Parameters = (),
    ) -> Answer: ...

    async def artifacts(
        self, selector: str, *, attempt: int | None = None
    ) -> Artifacts:
        """What was collected of one attempt of a job, the last one."""
        query = [("attempt", attempt)]
        answer = await self._call("GET", "jobs", selector, "artifacts", query=query)
        return convert(answer, Artifacts)

    @asynccontextmanager
    async def artifact(
        self, selector: str, path: str, *, attempt: int | None = None
    ) -> AsyncGenerator[AsyncIterator[bytes], None]:
        """Iterate over the bytes of one of the files; its hash is in the list."""
        place = ("jobs", selector, "artifacts", *path.split("/"))
        query = [("attempt", attempt)]
        async with await self._send("GET", place, query=query) as answer:
            yield answer
