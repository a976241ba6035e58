"""A sender that calls nobody, and the part of the fake `Control` about webhooks.

    sender = FakeSender([500, NotDelivered("gone"), 200])

answers so, one after the other, and with the last one from then on. It keeps the
contract of `sender_contract.py`, which the real one keeps too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.webhooks import Answered, NotDelivered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.domain.webhooks import Delivery, HookView, Sender
    from forge_actors.testing.sender_contract import Told


class FakeSender:
    """The port `Sender`."""

    def __init__(
        self, answers: Iterable[int | Answered | NotDelivered] = (200,)
    ) -> None:
        self._answers = list(answers)
        self.sent: list[Delivery] = []
        self.closed = False

    @classmethod
    def telling(cls, answers: Iterable[Told]) -> FakeSender:
        """One that answers as the contract writes it."""
        return cls(map(_answer, answers))

    async def send(self, delivery: Delivery) -> Answered:
        self.sent.append(delivery)
        last = len(self._answers) == 1
        answer = self._answers[0] if last else self._answers.pop(0)
        if isinstance(answer, NotDelivered):
            raise answer
        return Answered(answer) if isinstance(answer, int) else answer

    async def close(self) -> None:
        self.closed = True


def _answer(told: Told) -> Answered | NotDelivered:
    if told is None:
        return NotDelivered("it closed the connection without an answer")
    return (
        Answered(told) if isinstance(told, int) else Answered(told[0], float(told[1]))
    )


class FakeWebhooks:
    """Webhooks as the test puts them into `hooks`."""

    def __init__(self) -> None:
        self.hooks: dict[str, HookView] = {}

    async def webhooks(self) -> list[HookView]:
        return list(self.hooks.values())

    async def test_webhook(self, name: str) -> Answered:
        self._hook(name)
        return Answered(200)

    async def open_webhook(self, name: str) -> HookView:
        hook = self._hook(name)
        if hook.state not in ("suspended", "gone"):
            raise Refused(f"the webhook {name} is not closed")
        self.hooks[name] = structs.replace(hook, state="open")
        return self.hooks[name]

    def _hook(self, name: str) -> HookView:
        if name not in self.hooks:
            raise NotFound(f"there is no webhook {name!r}")
        return self.hooks[name]


if TYPE_CHECKING:
    _is_a_sender: Sender = FakeSender()
