"""What a caller can ask of a runtime about its webhooks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.webhooks import Answered, HookView


class WebhookControl(Protocol):
    """The part of `Control` that is about webhooks. Each is named by its whole name."""

    async def webhooks(self) -> list[HookView]:
        """All of them, and how far each is."""

    async def test_webhook(self, name: str) -> Answered:
        """Tell one something that is no event, once.

        Raises:
            NotFound: there is none. Refused: it was not taken, and why.
        """

    async def open_webhook(self, name: str) -> HookView:
        """Tell one again what comes, and what came since it was closed.

        Raises:
            NotFound: there is none. Refused: it is not closed.
        """
