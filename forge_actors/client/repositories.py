"""The part of the client that is about repositories."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.client.home_calls import HomeCalls
from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    import os


class RepositoryCalls(HomeCalls):
    """A repository is named by its name, its id or a path in it."""

    async def repositories(self) -> list[RepositoryView]:
        """All that are registered."""
        answer = await self._call("GET", "repositories")
        return convert(answer["repositories"], list[RepositoryView])

    async def repository(self, name: str) -> RepositoryDetails:
        """One repository; its note says if it is gone, or was found elsewhere."""
        return convert(await self._call("GET", "repositories", name), RepositoryDetails)

    async def add_repository(
        self, path: str | os.PathLike[str], name: str | None = None
    ) -> RepositoryView:
        """Register the git repository of a folder."""
        body = {"path": str(path), "name": name}
        answer = await self._call("POST", "repositories", body=body)
        return convert(answer, RepositoryView)

    async def enable_repository(self, name: str, *, enabled: bool) -> RepositoryView:
        """Let its jobs start, or start nothing new."""
        verb = "enable" if enabled else "disable"
        return convert(
            await self._call("POST", "repositories", name, verb), RepositoryView
        )

    async def relocate_repository(
        self, name: str, path: str | os.PathLike[str]
    ) -> RepositoryView:
        """Have a repository where somebody moved it, and its jobs with it."""
        answer = await self._call(
            "POST", "repositories", name, "relocate", body={"path": str(path)}
        )
        return convert(answer, RepositoryView)

    async def remove_repository(
        self, name: str, *, cancel: bool = False
    ) -> RepositoryView:
        """Know a repository no more; with `cancel` its jobs are ended first."""
        answer = await self._call(
            "DELETE", "repositories", name, query=[("cancel", int(cancel))]
        )
        return convert(answer, RepositoryView)
