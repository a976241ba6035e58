"""The reader of GitHub, against a server that does not mean well."""

from __future__ import annotations

import gzip
import json
import logging
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from forge_actors.domain.github.issues import PARALLEL, ChangedQuery, GitHubFailed
from forge_actors.edges.github import http
from forge_actors.testing.github import World, serving
from forge_actors.testing.github_contract import OTHER, PLACE, at, failure
from tests.edges.github_kit import TOKEN, Bench, bench

if TYPE_CHECKING:
    from collections.abc import Awaitable

SECONDARY = "You have exceeded a secondary rate limit. Please wait before retrying."
DOCS = "https://docs.github.com/rest"

#: What is answered, what kind of failure that is, and after how many requests.
ROWS: dict[str, tuple[dict[str, Any], str, int]] = {
    "400": ({"status": 400, "body": {"message": "Problems"}}, "malformed", 1),
    "401": ({"status": 401, "body": {"message": "Bad credentials"}}, "denied", 1),
    "403": ({"status": 403, "body": {"message": "Not accessible"}}, "denied", 1),
    "403 no JSON": ({"status": 403, "body": "Request forbidden"}, "denied", 1),
    "primary": (
        {
            "status": 403,
            "headers": {"x-ratelimit-remaining": "0"},
            "body": {"message": "API rate limit exceeded for user ID 21."},
        },
        "rate-limited",
        1,
    ),
    "secondary": ({"status": 403, "body": {"message": SECONDARY}}, "rate-limited", 1),
    "429": ({"status": 429, "body": "slow down"}, "rate-limited", 1),
    "404": ({"status": 404, "body": {"message": "Not Found"}}, "not-found", 1),
    "410": ({"status": 410, "body": {"message": "was deleted"}}, "not-found", 1),
    "451": ({"status": 451, "body": {"block": {"reason": "dmca"}}}, "denied", 1),
    "500": ({"status": 500, "body": {"message": "Server Error"}}, "unavailable", 3),
    "502": ({"status": 502, "body": "<html>Bad gateway"}, "unavailable", 3),
    "503": ({"status": 503, "body": {"code": "x"}}, "unavailable", 3),
    "hung up": ({"hang_up": True}, "unavailable", 3),
    "cut off": ({"cut_after": 1}, "unavailable", 3),
    "garbage": ({"body": b"[{"}, "malformed", 2),
    "another shape": ({"body": {"id": 1}}, "malformed", 2),
    "no UTF-8": ({"body": b'["\xff"]'}, "malformed", 2),
    "deep": ({"body": b"[" * 100_000}, "malformed", 2),
    "304 unasked": ({"status": 304}, "malformed", 1),
    "no place": ({"status": 302}, "malformed", 4),
    "303": ({"status": 303, "headers": {"location": "/repos"}}, "malformed", 1),
    "packed oddly": ({"headers": {"content-encoding": "br"}}, "malformed", 1),
    "not packed": ({"headers": {"content-encoding": "gzip"}}, "malformed", 1),
}


def ready(made: Bench) -> None:
    epic = made.world.issue(made.demo, 7)
    child = made.world.issue(made.demo, 12, parent=epic)
    made.world.block(child, made.world.issue(made.demo, 13))


@pytest.mark.parametrize("row", ROWS)
async def test_each_bad_answer_to_each_read_has_its_kind(row: str) -> None:
    fault, kind, requests = ROWS[row]
    async with bench() as made:
        ready(made)
        reader = made.reader
        for path, read in {
            "/demo$": partial(reader.repository, PLACE),
            "/issues/12$": partial(reader.issue, at(12)),
            "/sub_issues$": partial(reader.sub_issues, at(12)),
            "/blocked_by$": partial(reader.blockers, at(12)),
        }.items():
            await reader.close()  # what it knows of limits was another's
            made.troubles.log.clear()
            made.troubles.faults.clear()
            made.troubles.fault(path, times=9, **fault)
            expected = kind
            if row in ("404", "410") and path in ("/sub_issues$", "/blocked_by$"):
                expected = "unsupported"  # the issue itself is there
            assert await failure(read()) == expected, path
            asked = [each for each in made.troubles.paths if each.endswith(path[:-1])]
            assert len(asked) == requests, path
        transient = kind in ("unavailable", "rate-limited")
        assert GitHubFailed(kind, "").transient == transient  # type: ignore[arg-type]


async def test_what_is_over_in_a_moment_is_not_noticed() -> None:
    async with bench() as made:
        ready(made)
        made.troubles.fault("/issues/12$", status=502)
        made.troubles.fault("/issues/12$", hang_up=True, nth=2)
        assert (await made.reader.issue(at(12))).at == at(12)
        first, second = made.waited
        assert 0.37 < first < 0.63
        assert 0.7 < second < 1.3


async def test_an_answer_that_does_not_come_is_given_up() -> None:
    async with bench(seconds=0.05) as made:
        ready(made)
        made.troubles.fault("/issues/12$", times=9, gate=trio.Event())
        with pytest.raises(GitHubFailed, match=r"took longer than 0.05 s") as caught:
            await made.reader.issue(at(12))
        assert caught.value.kind == "unavailable"


async def test_a_short_limit_is_waited_out_and_a_long_one_told() -> None:
    async with bench() as made:
        ready(made)
        limit = {"status": 429, "body": {"message": SECONDARY}}
        made.troubles.fault("/issues/12$", **limit, headers={"retry-after": "1"})
        slow = made.troubles.fault("/issues/7$", **limit, headers={"retry-after": "90"})
        reading = made.reader.issue(at(12))
        assert await _with_clock(made, reading) == at(12)
        with pytest.raises(GitHubFailed, match="again in 90 s") as caught:
            await made.reader.issue(at(7))
        assert caught.value.wait == 90
        # It is one limit for all that is read there, so nobody is asked meanwhile.
        before = len(made.troubles.log)
        with pytest.raises(GitHubFailed) as caught:
            await made.reader.repository(OTHER)
        assert 80 < (caught.value.wait or 0) <= 90
        assert (len(made.troubles.log), slow.met) == (before, 1)


async def _with_clock(made: Bench, reading: Awaitable[Any]) -> object:
    """Where it is, once the limit that was told is over."""
    server = made.reader._server("github.com")
    made.reader._sleep = _over(server)  # type: ignore[assignment]
    return (await reading).at


def _over(server: Any) -> object:
    async def sleep(seconds: float) -> None:
        assert seconds == 1.0
        server._again = 0.0
        await trio.lowlevel.checkpoint()

    return sleep


async def test_the_last_question_of_an_hour_is_the_last() -> None:
    async with bench() as made:
        ready(made)
        made.world.tokens[TOKEN].limit = 2
        await made.reader.issue(at(12))
        await made.reader.issue(at(7))
        with pytest.raises(GitHubFailed) as caught:
            await made.reader.issue(at(13))
        assert caught.value.kind == "rate-limited"
        # By the clock of the server, whose hour it is.
        assert 3590 < (caught.value.wait or 0) <= 3600
        assert made.troubles.statuses == [200, 200]


async def test_what_has_not_changed_is_not_sent_again() -> None:
    async with bench() as made:
        ready(made)

        async def snapshot() -> list[object]:
            reader = made.reader
            return [
                await reader.repository(PLACE),
                await reader.issue(at(7)),
                await reader.sub_issues(at(7)),
                await reader.blockers(at(12)),
            ]

        first = await snapshot()
        assert made.troubles.statuses == [200] * 4
        used = made.world.tokens[TOKEN].used
        assert await snapshot() == first
        assert made.troubles.statuses[4:] == [304] * 4
        assert made.world.tokens[TOKEN].used == used
        [blocker] = await made.reader.blockers(at(12))
        made.world.close(made.world.issues[blocker.id])
        [blocker] = await made.reader.blockers(at(12))
        assert not blocker.open


async def test_pages_that_shift_while_they_are_read_are_read_again() -> None:
    async with bench() as made:
        epic = made.world.issue(made.demo, 1)
        for number in range(100, 320):
            made.world.issue(made.demo, number, parent=epic)
        last = made.world.issues[epic.children[-1]]

        def to_the_front() -> None:
            epic.children.remove(last.id)
            epic.children.insert(0, last.id)

        made.troubles.after("/sub_issues$", to_the_front, nth=2)
        told = await made.reader.sub_issues(at(1))
        assert (len(told), told[0].at.number) == (220, last.number)
        assert len(made.troubles.log) == 6


async def test_a_list_that_keeps_shifting_or_does_not_end_is_refused() -> None:
    async with bench() as made:
        epic = made.world.issue(made.demo, 1)
        for number in range(100, 320):
            made.world.issue(made.demo, number, parent=epic)
        url = f"{made.server.base}/repositories/101/issues/1/sub_issues?per_page=100"
        for link, kind in {
            f'<{url}>; rel="next"': "inconsistent",
            f'<{url.replace("127.0.0.1", "localhost")}>; rel="next"': "malformed",
            '<https://evil.example/x>; rel="next"': "malformed",
            f'<{made.server.base}/../x>; rel="next"': "malformed",
        }.items():
            await made.reader.close()
            fault = made.troubles.fault("/sub_issues$", times=9, headers={"link": link})
            assert await failure(made.reader.sub_issues(at(1))) == kind
            made.troubles.faults.remove(fault)
        for number in range(1000, 1800):
            made.world.issue(made.demo, number, parent=epic)
        assert await failure(made.reader.sub_issues(at(1))) == "too-large"


async def test_the_token_goes_to_no_other_server() -> None:
    async with bench() as made, serving(World()) as evil:
        ready(made)
        away = {"location": f"{evil.base}/repos/octo/demo/issues/12"}
        for status in (301, 302, 307, 308):
            made.troubles.fault("/issues/12$", status=status, headers=away)
            assert await failure(made.reader.issue(at(12))) == "malformed"
            made.troubles.faults.clear()
        around = {"location": "/repos/octo/demo/issues/12"}
        made.troubles.fault("/issues/12$", status=301, headers=around, times=99)
        assert await failure(made.reader.issue(at(12))) == "malformed"
        assert evil.connections == 0


async def test_what_is_sent_says_who_asks_and_keeps_the_token_for_itself(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with bench() as made:
        ready(made)
        cookie = {"set-cookie": "a=b; Path=/"}
        made.troubles.fault("/issues", times=9, headers=cookie)
        await made.reader.issue(at(12))
        await made.reader.issue(at(7))
        sent = made.troubles.log[-1].headers
        assert sent["user-agent"] == "forge-actors"
        assert sent["accept"] == "application/vnd.github+json"
        assert sent["x-github-api-version"] == "2022-11-28"
        assert sent["authorization"] == "***"
        assert "cookie" not in sent
        made.troubles.faults.clear()
        echo = {"message": f"no, {TOKEN} is not \x1b[31mgood"}
        made.troubles.fault("/issues/13$", status=403, body=echo)
        with pytest.raises(GitHubFailed) as caught:
            await made.reader.issue(at(13))
        kept = repr(made.tokens._known)
    assert "GH_TOKEN" in kept
    told = f"{caught.value}{caught.value!r}{kept}{caplog.text}"
    assert TOKEN not in told
    assert "\x1b" not in str(caught.value)
    assert "403 to GET /repos/octo/demo/issues/13" in str(caught.value)


async def test_a_packed_answer_is_unpacked_within_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 100_000)
    async with bench() as made:
        ready(made)
        packed = {"content-encoding": "gzip"}
        true = json.dumps([]).encode()
        made.troubles.fault("/sub_issues$", body=gzip.compress(true), headers=packed)
        assert await made.reader.sub_issues(at(12)) == ()
        bomb = gzip.compress(b" " * 50_000_000)
        made.troubles.fault("/issues/12$", body=bomb, headers=packed, times=9)
        assert await failure(made.reader.issue(at(12))) == "malformed"
        half = gzip.compress(bytes(range(256)) * 100)[:-20]
        made.troubles.fault("/issues/13$", body=half, headers=packed, times=9)
        assert await failure(made.reader.issue(at(13))) == "unavailable"
        made.troubles.fault("/issues/7$", body=b" " * 200_000, times=9)
        assert await failure(made.reader.issue(at(7))) == "malformed"


def test_a_bomb_takes_no_more_memory_than_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 100_000)
    bomb = gzip.compress(b" " * 20_000_000)
    unpacker = http._Unpacker("gzip", "it")
    tracemalloc.start()
    try:
        assert unpacker.feed(bomb) is False
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2_000_000


async def test_four_questions_are_under_way_at_once() -> None:
    async with bench() as made:
        for number in range(1, 11):
            made.world.issue(made.demo, number)
        gate = trio.Event()
        made.troubles.fault("/issues/", times=99, gate=gate)
        async with trio.open_nursery() as nursery:
            for number in range(1, 11):
                nursery.start_soon(made.reader.issue, at(number))
            while made.troubles.under_way < PARALLEL:
                await trio.lowlevel.checkpoint()
            await wait_all_tasks_blocked(0.05)
            assert len(made.troubles.log) == PARALLEL
            gate.set()
        assert len(made.troubles.log) == 10
        assert made.server.connections == PARALLEL


async def test_a_server_that_does_not_tell_relations_is_told_apart() -> None:
    async with bench() as made:
        ready(made)
        made.server.routes.relations = False
        with pytest.raises(GitHubFailed, match="does not tell sub_issues") as caught:
            await made.reader.sub_issues(at(7))
        assert caught.value.kind == "unsupported"
        assert not caught.value.transient


async def test_changes_of_another_repository_are_not_taken() -> None:
    async with bench() as made:
        ready(made)
        made.world.issue(made.other, 1)
        page = await made.reader.changed(OTHER, ChangedQuery())
        link = f"{made.server.base}/repos/octo/other/issues"
        assert len(page.issues) == 1
        reading = made.reader.changed(PLACE, ChangedQuery(link=link))
        assert await failure(reading) == "not-found"
        away = ChangedQuery(link="https://evil.example/repos/octo/demo/issues")
        assert await failure(made.reader.changed(PLACE, away)) == "malformed"


async def test_github_says_how_often_it_wants_to_be_asked() -> None:
    async with bench() as made:
        ready(made)
        made.troubles.fault("/issues$", times=9, headers={"x-poll-interval": "120"})
        page = await made.reader.changed(PLACE, ChangedQuery())
        assert page.pace == 120
        again = await made.reader.changed(PLACE, ChangedQuery(etag=page.etag))
        assert (again.same, again.pace) == (True, 120)


async def test_another_token_is_told_everything_anew() -> None:
    async with bench() as made:
        ready(made)
        await made.reader.issue(at(12))
        made.world.tokens["another"] = made.world.tokens.pop(TOKEN)
        with pytest.raises(GitHubFailed, match="401"):
            await made.reader.issue(at(12))
        made.tokens._environ["GH_TOKEN"] = "another"  # type: ignore[index]
        assert (await made.reader.issue(at(12))).at == at(12)
        assert made.troubles.statuses == [200, 401, 200]
        # What one may see another may not, so it is not asked whether it changed.
        assert "if-none-match" not in made.troubles.log[-1].headers
