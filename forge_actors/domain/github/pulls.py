"""The port of whoever shows work as a pull request: all that is ever written there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.github.places import Place

#: Characters of a title, as many as GitHub takes.
MAX_TITLE = 256


class PullRequests(Protocol):
    """Raises GitHubFailed: what is transient may have been done all the same."""

    async def find(self, place: Place, branch: str) -> int | None:
        """The number of the newest pull request of a branch of the repository, open or
        closed; None: there was never one."""

    async def open_draft(
        self, place: Place, branch: str, base: str | None, title: str, body: str
    ) -> int:
        """Open a draft and return its number; without a base it is to go into the
        default branch. It is asked once and never again."""

    async def close(self) -> None:
        """Let go of what is open."""
