"""The part of the fake `Control` that is about what needs a person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.answers import DENIED
from forge_actors.domain.errors import Refused
from forge_actors.domain.inbox import MAX_ITEMS, Inbox, named
from forge_actors.domain.jobs import JobError, JobView
from forge_actors.domain.steering import asks_nothing

if TYPE_CHECKING:
    from forge_actors.domain.inbox import Item


class FakeInbox(ABC):
    """Items as the test puts them into `inbox_items`; what was answered by job, None
    for an approval."""

    views: dict[str, JobView]

    def __init__(self) -> None:
        self.inbox_items: list[Item] = []
        self.dismissed: list[str] = []
        self.answers: dict[str, str | None] = {}
        #: What was approved, and how.
        self.approvals: list[tuple[str, str]] = []

    @abstractmethod
    def _find(self, selector: str) -> JobView: ...

    async def inbox(self) -> Inbox:
        left = self._left()
        more = max(0, len(left) - MAX_ITEMS)
        return Inbox(left[:MAX_ITEMS], more, len(self.dismissed))

    async def dismiss(self, item: str) -> Item:
        found = named(self._left(), item)
        self.dismissed.append(found.id)
        return found

    async def answer(self, selector: str, text: str) -> JobView:
        return self._told(selector, text)

    async def approve(
        self, selector: str, *, how: str = "program", caller: str | None = None
    ) -> JobView:
        effects = self._asking(selector).effects
        if effects is not None and caller is not None:
            raise Refused(f"job {caller} cannot allow another one anything")
        self.approvals.append((selector, how))
        return self._told(selector, None)

    async def check_effect(self, job: str, effect: str) -> None:
        effects = self._find(job).effects
        if effects is not None and effect not in effects.authorised:
            raise Refused(f"job {job} may not {effect}")

    def _told(self, selector: str, text: str | None) -> JobView:
        view = self._asking(selector)
        self.answers[view.id] = text
        self.views[view.id] = structs.replace(view, state="queued", error=None)
        return self.views[view.id]

    async def deny(
        self, selector: str, reason: str | None = None, *, caller: str | None = None
    ) -> JobView:
        view = self._asking(selector)
        if view.effects is not None and caller is not None:
            raise Refused(f"job {caller} cannot decide about another one")
        error = JobError("DENIED", reason or DENIED)
        self.views[view.id] = structs.replace(view, state="failed", error=error)
        return self.views[view.id]

    def _asking(self, selector: str) -> JobView:
        view = self._find(selector)
        if view.state != "waiting_for_approval":
            raise Refused(asks_nothing(view.id, view.state))
        return view

    def _left(self) -> list[Item]:
        return [each for each in self.inbox_items if each.id not in self.dismissed]
