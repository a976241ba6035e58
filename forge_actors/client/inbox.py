"""The part of the client that is about what needs a person."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from forge_actors.domain.inbox import Inbox, Item
from forge_actors.domain.jobs import JobView
from forge_actors.domain.requests import convert

if TYPE_CHECKING:
    from forge_actors.client.sync import Parameters


class InboxCalls(ABC):
    """An item is named by its id, or by the beginning or the end of that."""

    @abstractmethod
    async def _call(
        self, method: str, *path: str, body: object = None, query: Parameters = ()
    ) -> Any: ...

    async def inbox(self) -> Inbox:
        """Everything that needs a person, what is urgent first."""
        return convert(await self._call("GET", "inbox"), Inbox)

    async def dismiss(self, item: str) -> Item:
        """Somebody has seen to an item: it is shown no more."""
        answer = await self._call("POST", "inbox", "dismiss", body={"item": item})
        return convert(answer, Item)

    async def answer(self, job: str, text: str) -> JobView:
        """Let a job go on that asks something, with this as its input."""
        body = {"text": text}
        return convert(
            await self._call("POST", "jobs", job, "answer", body=body), JobView
        )

    async def approve(self, job: str, *, how: str = "http") -> JobView:
        """The same without words, or allow what a job would do to the outside.

        `how` is by what it was approved, as it is saved.
        """
        answer = await self._call("POST", "jobs", job, "approve", body={"how": how})
        return convert(answer, JobView)

    async def deny(self, job: str, reason: str | None = None) -> JobView:
        """End a job that asks something."""
        body = {"reason": reason}
        return convert(
            await self._call("POST", "jobs", job, "deny", body=body), JobView
        )
