"""The part of the client that is about webhooks."""

from __future__ import annotations

from forge_actors.client.home_calls import HomeCalls
from forge_actors.domain.requests import convert
from forge_actors.domain.webhooks import Answered, HookView


class WebhookCalls(HomeCalls):
    """Each is named by its whole name."""

    async def webhooks(self) -> list[HookView]:
        """All of them, and how far each is."""
        answer = await self._call("GET", "webhooks")
        return convert(answer["webhooks"], list[HookView])

    async def test_webhook(self, name: str) -> Answered:
        """Tell one something that is no event, once.

        Raises:
            NotFound: there is none. Refused: it was not taken, and why.
        """
        return convert(await self._call("POST", "webhooks", name, "test"), Answered)

    async def open_webhook(self, name: str) -> HookView:
        """Tell one again what comes, and what came since it was closed.

        Raises:
            NotFound: there is none. Refused: it is not closed.
        """
        return convert(await self._call("POST", "webhooks", name, "open"), HookView)
