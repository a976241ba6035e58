"""The part of the fake control that is about artifacts."""

from __future__ import annotations

import hashlib
import io
from abc import ABC, abstractmethod
from contextlib import contextmanager
from typing import TYPE_CHECKING

from forge_actors.domain.artifacts import ArtifactFile, Artifacts
from forge_actors.domain.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.domain.jobs import JobView


class FakeContent:
    """A file in memory."""

    def __init__(self, path: str, data: bytes) -> None:
        self.file = ArtifactFile(path, len(data), hashlib.sha256(data).hexdigest())
        #: What is sent; a test may give it less than there was.
        self.data = data

    @contextmanager
    def opened(self) -> Iterator[Callable[[int], bytes]]:
        yield io.BytesIO(self.data).read


class FakeArtifacts(ABC):
    """Holds the files of jobs in memory."""

    def __init__(self) -> None:
        #: By job.
        self.contents: dict[str, list[FakeContent]] = {}

    @abstractmethod
    async def _begin(self) -> None: ...

    @abstractmethod
    def _find(self, selector: str) -> JobView: ...

    async def artifacts(
        self, selector: str, *, attempt: int | None = None
    ) -> Artifacts:
        await self._begin()
        files = [each.file for each in self.contents.get(self._find(selector).id, [])]
        total = sum(each.bytes for each in files)
        return Artifacts(attempt or 1, "complete", files, total)

    async def artifact(
        self, selector: str, path: str, *, attempt: int | None = None
    ) -> FakeContent:
        await self._begin()
        for each in self.contents.get(self._find(selector).id, []):
            if each.file.path == path:
                return each
        raise NotFound(f"there is no artifact {path!r}")
