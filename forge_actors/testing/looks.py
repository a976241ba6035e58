"""The looks at repositories of a store in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.looking import Look

if TYPE_CHECKING:
    from forge_actors.testing.rows import Rows


class LooksInMemory:
    """The part of a store that is about looks, on its rows."""

    _pending: Rows

    def look(self, repo: str) -> Look | None:
        return self._pending.looks.get(repo)

    def unfinished_looks(self) -> list[Look]:
        return [
            look
            for look, fence in self._all()
            if look.dirty is not None or look.outdated(fence)
        ]

    def oldest_look(self) -> str | None:
        looks = [look for look, _ in self._all()]
        oldest = min(looks, key=lambda look: (look.looked_at, look.repo), default=None)
        return None if oldest is None else oldest.repo

    def _all(self) -> list[tuple[Look, int]]:
        rows = self._pending
        return [
            (rows.looks.get(repo.id, Look(repo.id)), repo.fence)
            for repo in rows.repositories.values()
            if repo.removed_at is None
        ]
