"""What every sender of webhooks has to do, as checks.

`open_` gives a sender, the target of a receiver that answers as it is told, one after
the other, and what came there.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, NamedTuple

from forge_actors.domain.webhooks import Answered, Delivery, NotDelivered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from forge_actors.domain.webhooks import Sender, Target

    #: A status, with seconds behind it a `retry-after`; None: no answer at all.
    Told = int | tuple[int, int] | None
    Open = Callable[[Sequence[Told]], AbstractAsyncContextManager["Ground"]]
    Check = Callable[[Open], Awaitable[None]]

SECONDS = 20.0


class Came(NamedTuple):
    path: str
    headers: dict[str, str]
    body: bytes


class Ground(NamedTuple):
    sender: Sender
    target: Target
    came: Callable[[], list[Came]]


def delivery(target: Target, body: bytes = b"{}", seconds: float = SECONDS) -> Delivery:
    return Delivery(target, {"webhook-id": "a.1"}, body, seconds)


async def check_the_answer_is_told_and_what_was_sent_arrives(open_: Open) -> None:
    body = bytes(range(256)) * 300
    async with open_([200]) as ground:
        assert await ground.sender.send(delivery(ground.target, body)) == Answered(200)
        [came] = ground.came()
        assert (came.path, came.body) == (ground.target.path, body)
        assert came.headers["webhook-id"] == "a.1"


async def check_each_of_several_has_its_own_answer(open_: Open) -> None:
    async with open_([204, 500, 410, 200]) as ground:
        for status in (204, 500, 410, 200):
            answer = await ground.sender.send(delivery(ground.target, b"%d" % status))
            assert answer.status == status
        assert [came.body for came in ground.came()] == [b"204", b"500", b"410", b"200"]


async def check_no_redirect_is_followed(open_: Open) -> None:
    async with open_([302, 200]) as ground:
        assert (await ground.sender.send(delivery(ground.target))).status == 302
        assert len(ground.came()) == 1


async def check_when_it_wants_to_be_told_again_is_known(open_: Open) -> None:
    async with open_([(429, 7), (503, 0)]) as ground:
        assert await ground.sender.send(delivery(ground.target)) == Answered(429, 7.0)
        assert await ground.sender.send(delivery(ground.target)) == Answered(503, 0.0)


async def check_no_answer_is_none_and_the_next_may_have_one(open_: Open) -> None:
    async with open_([None, 200]) as ground:
        why = ""
        try:
            await ground.sender.send(delivery(ground.target))
        except NotDelivered as error:
            why = str(error)
        assert why
        assert ground.target.path not in why
        assert (await ground.sender.send(delivery(ground.target))).status == 200


async def check_a_closed_one_can_be_used_again(open_: Open) -> None:
    async with open_([200]) as ground:
        await ground.sender.send(delivery(ground.target))
        await ground.sender.close()
        await ground.sender.close()
        assert (await ground.sender.send(delivery(ground.target))).status == 200


CHECKS: tuple[Check, ...] = (
    check_the_answer_is_told_and_what_was_sent_arrives,
    check_each_of_several_has_its_own_answer,
    check_no_redirect_is_followed,
    check_when_it_wants_to_be_told_again_is_known,
    check_no_answer_is_none_and_the_next_may_have_one,
    check_a_closed_one_can_be_used_again,
)
