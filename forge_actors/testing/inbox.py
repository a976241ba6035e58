"""The part of the fake `Control` that is about what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.inbox import MAX_ITEMS, Inbox, named

if TYPE_CHECKING:
    from forge_actors.domain.inbox import Item


class FakeInbox:
    """Items as the test puts them into `inbox_items`."""

    def __init__(self) -> None:
        self.inbox_items: list[Item] = []
        self.dismissed: list[str] = []

    async def inbox(self) -> Inbox:
        left = self._left()
        more = max(0, len(left) - MAX_ITEMS)
        return Inbox(left[:MAX_ITEMS], more, len(self.dismissed))

    async def dismiss(self, item: str) -> Item:
        found = named(self._left(), item)
        self.dismissed.append(found.id)
        return found

    def _left(self) -> list[Item]:
        return [each for each in self.inbox_items if each.id not in self.dismissed]
