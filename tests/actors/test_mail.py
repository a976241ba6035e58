"""What the mailboxes hold, and how often actors failed, as the supervisor counts it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import trio.testing

from forge_actors.actors.mail import mail_counts
from forge_actors.actors.mailbox import open_mailbox
from forge_actors.actors.supervisor_messages import CountMail, MailCounts
from tests.actors.kit import world

if TYPE_CHECKING:
    from pathlib import Path

    from tests.actors.kit import World

pytestmark = pytest.mark.mock_clock


async def counts(made: World) -> MailCounts:
    found: MailCounts = await made.mailbox.ask(CountMail)
    return found


async def test_unread_messages_are_counted_where_they_are(tmp_path: Path) -> None:
    class Box:
        def __init__(self, depth: int) -> None:
            self.depth = depth

    class Kept(Box):
        failures = 4

    boxes: Any = {"repo": Box(3), "other": Box(1)}
    own: Any = Box(7)
    aside: Any = Kept(0)
    cleaner: Any = Kept(2)
    found = mail_counts(own, boxes, aside, cleaner)
    assert found == MailCounts(7, 4, 3, 4, 2, 4)
    async with world(tmp_path) as made:
        await made.open()
        await trio.testing.wait_all_tasks_blocked()
        assert await counts(made) == MailCounts(0, 0, 0, 0, 0, 0)


async def test_a_mailbox_knows_how_much_of_it_is_unread() -> None:
    mailbox, inbox = open_mailbox()
    for number in range(3):
        mailbox.tell(number)
    assert mailbox.depth == 3
    await inbox.receive()
    assert mailbox.depth == 2


async def test_each_failure_of_a_repository_counts(tmp_path: Path) -> None:
    async with world(tmp_path) as made:
        for number in range(1, 4):
            with suppress(Exception):
                await made.crash()
            await trio.testing.wait_all_tasks_blocked()
            assert (await counts(made)).repository_failures == number
