"""Grants: the tokens of a job go back exactly once, however the holder ends."""

from __future__ import annotations

from functools import partial

import pytest
import trio

from forge_actors.actors.tokens import Grant, Returned
from forge_actors.domain.errors import MailboxClosed

pytestmark = pytest.mark.mock_clock


class Bug(Exception):
    pass


def grant_into(back: list[Returned]) -> Grant:
    return Grant("g1", "repo", ("workers",), back.append)


async def test_a_grant_goes_back_when_its_holder_succeeds_fails_or_is_killed() -> None:
    back: list[Returned] = []
    with grant_into(back) as first:
        assert back == []
    second = grant_into(back)
    with pytest.raises(Bug), second:
        raise Bug
    third = grant_into(back)

    async def hold() -> None:
        with third:
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(hold)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert [returned.grant for returned in back] == [first, second, third]
    assert all(grant.returned for grant in (first, second, third))


async def test_a_grant_is_given_back_once() -> None:
    back: list[Returned] = []
    with grant_into(back) as grant:
        grant.give_back()
        grant.give_back()
    grant.give_back()
    assert back == [Returned(grant)]


async def test_a_supervisor_that_has_ended_is_no_error() -> None:
    def gone(_: Returned) -> None:
        raise MailboxClosed

    with Grant("g1", "repo", ("workers",), gone) as grant:
        pass
    assert grant.returned


async def test_grants_of_killed_holders_all_come_back() -> None:
    back: list[Returned] = []

    async def hold(grant: Grant) -> None:
        with grant:
            await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        for number in range(100):
            send = partial(Grant, f"g{number}", "repo", ("workers",), back.append)
            nursery.start_soon(hold, send())
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert sorted(entry.grant.id for entry in back) == sorted(
        f"g{number}" for number in range(100)
    )
