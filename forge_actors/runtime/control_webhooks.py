"""What can be asked of the webhooks."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from forge_actors.edges.webhooks import HttpSender
from forge_actors.runtime.control_base import ControlBase
from forge_actors.runtime.installation import known_installation
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.webhooks import Mailer, Webhooks, open_webhooks

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.webhooks import Answered, HookView
    from forge_actors.runtime.webhook_settings import WebhookTable


class WebhookControl(ControlBase):
    """The part of the port `Control` that is about webhooks."""

    _webhooks = Webhooks(())

    async def tell_webhooks(self, tables: Sequence[WebhookTable]) -> None:
        """Tell them of what happens, until the runtime ends."""
        self._webhooks = open_webhooks(
            tables,
            self._mailer,
            self._events,
            self._store,
            self._clock,
            known_installation(self._home) or "unknown",
        )
        await self._webhooks.run()

    async def webhooks(self) -> list[HookView]:
        return [hook.view() for hook in self._webhooks.hooks.values()]

    async def test_webhook(self, name: str) -> Answered:
        return await self._webhooks.named(name).test()

    async def open_webhook(self, name: str) -> HookView:
        hook = self._webhooks.named(name)
        await hook.open()
        return hook.view()

    def _mailer(self) -> Mailer:
        secrets = SecretFolder(self._home)
        return Mailer(HttpSender(), secrets, self._clock, random.SystemRandom())
