"""Who is let in over TCP, and who is not."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.gateway import auth
from forge_actors.edges.gateway.auth import Gate
from forge_actors.edges.gateway.messages import NOBODY, Request, Response
from forge_actors.edges.gateway.refusal import Refusal

TOKEN = "t" * 43
COOKIE = "forge-actors-1"


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def gate(clock: Clock) -> Gate:
    return Gate(TOKEN, COOKIE, rate=10_000.0, now=clock)


def request(
    method: str = "GET", *path: str, query: str = "", **headers: str
) -> Request:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Request(method, path or ("v1", "jobs"), query, named)


def refused(gate: Gate, asked: Request) -> tuple[int, str]:
    """The status, and what the client is asked to show."""
    with pytest.raises(Refusal) as caught:
        gate.admit(asked)
    answer = caught.value.response()
    return answer.status, answer.headers.get("www-authenticate", "")


async def let_in(gate: Gate, place: str = "/") -> str:
    """The cookie of a browser that has used a link."""
    asked = request("GET", "login", query=f"ticket={gate.ticket(place)}")
    answer = await gate.login(asked)
    assert (answer.status, answer.headers["location"]) == (303, place)
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert attributes == ["Path=/", "HttpOnly", "SameSite=Strict"]
    return cookie


def test_a_program_with_the_token_is_let_in(gate: Gate) -> None:
    asker = gate.admit(request(authorization=f"Bearer {TOKEN}"))
    assert asker.kind == "token"
    assert asker.id.startswith("bearer-")
    assert TOKEN not in asker.id
    assert gate.admit(request(authorization=f"bearer  {TOKEN}")) == asker


@pytest.mark.parametrize(
    "header", ["Bearer", f"Bearer {TOKEN[1:]}", f"Basic {TOKEN}", TOKEN, "", "é" * 43]
)
def test_any_other_token_is_none(gate: Gate, header: str) -> None:
    status, challenge = refused(gate, request(authorization=header))
    assert status == 401
    assert challenge == 'Bearer realm="forge-actors", error="invalid_token"'


def test_who_shows_nothing_is_asked_for_the_token(gate: Gate) -> None:
    assert refused(gate, request()) == (401, 'Bearer realm="forge-actors"')
    assert refused(gate, request(cookie=f"{COOKIE}=guess"))[0] == 401


def test_anybody_may_log_in_and_ask_whether_it_is_ready(gate: Gate) -> None:
    for path in ("login", "ready"):
        assert gate.admit(request("GET", path)) == NOBODY
        assert refused(gate, request("POST", path))[0] == 401
        assert refused(gate, request("GET", path, "more"))[0] == 401


async def test_a_link_lets_one_browser_in_once(gate: Gate) -> None:
    ticket = gate.ticket("/jobs/a")
    asked = request("GET", "login", query=f"ticket={ticket}")
    first, second = await gate.login(asked), await gate.login(asked)
    assert (first.status, second.status) == (303, 401)
    assert ticket not in first.headers["set-cookie"]
    assert b"forge-actors open" in second.body


async def test_a_link_is_worthless_after_a_minute(gate: Gate, clock: Clock) -> None:
    ticket = gate.ticket("/")
    clock.now += auth.TICKET_SECONDS
    answer = await gate.login(request("GET", "login", query=f"ticket={ticket}"))
    assert answer.status == 401


async def test_looking_at_a_link_does_not_spend_it(gate: Gate) -> None:
    query = f"ticket={gate.ticket('/')}"
    for asked in (
        request("HEAD", "login", query=query),
        request("POST", "login", query=query),
        request("GET", "login", "x", query=query),
    ):
        assert (await gate.login(asked)).status == 405
    assert (await gate.login(request("GET", "login", query=query))).status == 303


async def test_of_many_links_the_oldest_are_worthless(gate: Gate) -> None:
    tickets = [gate.ticket("/") for _ in range(auth.MAX_TICKETS + 1)]

    async def status(ticket: str) -> int:
        asked = request("GET", "login", query=f"ticket={ticket}")
        answer = await gate.login(asked)
        assert isinstance(answer, Response)
        return answer.status

    assert [await status(ticket) for ticket in tickets[:2]] == [401, 303]


@pytest.mark.parametrize(
    "place", ["", "jobs", "//evil.test", "/\\evil.test", "/a\r\nset-cookie: b=c", "/ä"]
)
def test_a_link_leads_to_no_other_host(gate: Gate, place: str) -> None:
    with pytest.raises(InvalidInput, match="no path of this service"):
        gate.ticket(place)


async def test_a_page_that_was_let_in_reads(gate: Gate) -> None:
    cookie = await let_in(gate)
    asker = gate.admit(request(cookie=f"other=1; {cookie}"))
    assert asker.kind == "page"
    assert asker.id not in cookie
    assert gate.admit(request(cookie=cookie, sec_fetch_site="same-origin")) == asker
    assert gate.admit(request(cookie=cookie, sec_fetch_site="none")) == asker
    assert refused(gate, request(cookie=f"{cookie}; {COOKIE}=other"))[0] == 401


@pytest.mark.parametrize("site", ["same-site", "cross-site"])
async def test_pages_of_others_cannot_use_its_cookie(gate: Gate, site: str) -> None:
    cookie = await let_in(gate)
    asked = request(cookie=cookie, sec_fetch_site=site)
    assert refused(gate, asked)[0] == 403
    framed = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}
    asked = request(cookie=cookie, sec_fetch_site=site, **framed)
    assert refused(gate, asked)[0] == 403
    followed = {"sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    asked = request(cookie=cookie, sec_fetch_site=site, **followed)
    assert gate.admit(asked).kind == "page"


async def test_a_page_changes_something_only_if_it_says_who_it_is(gate: Gate) -> None:
    cookie = await let_in(gate)
    for method in ("POST", "DELETE"):
        assert refused(gate, request(method, cookie=cookie))[0] == 403
        cross = request(method, cookie=cookie, sec_fetch_site="same-site")
        assert refused(gate, cross)[0] == 403
        ours = request(method, cookie=cookie, sec_fetch_site="same-origin")
        assert gate.admit(ours).kind == "page"
        # That it is ours was seen when the head was read.
        named = request(method, cookie=cookie, origin="http://127.0.0.1:1")
        assert gate.admit(named).kind == "page"


async def test_a_page_cannot_use_the_service_as_an_agent_does(gate: Gate) -> None:
    cookie = await let_in(gate)
    for method in ("GET", "POST", "DELETE"):
        asked = request(method, "mcp", cookie=cookie, origin="http://127.0.0.1:1")
        assert refused(gate, asked)[0] == 403
    program = request("POST", "mcp", authorization=f"Bearer {TOKEN}")
    assert gate.admit(program).kind == "token"
    assert refused(gate, request("POST", "mcp"))[0] == 401


async def test_it_is_told_which_page_is_let_in_no_more(clock: Clock) -> None:
    told: list[str] = []
    gate = Gate(TOKEN, COOKIE, rate=1000.0, now=clock, ended=told.append)
    cookies = [await let_in(gate) for _ in range(3)]
    pages = [gate.admit(request(cookie=cookie)) for cookie in cookies]
    assert {page.until for page in pages} == {clock.now + auth.SESSION_SECONDS}
    assert gate.log_out(pages[1].id)
    assert not gate.log_out(pages[1].id)
    for _ in range(auth.MAX_SESSIONS - 1):
        await let_in(gate)
    clock.now += auth.IDLE_SECONDS + 1
    assert refused(gate, request(cookie=cookies[2]))[0] == 401
    assert told == [pages[1].id, pages[0].id, pages[2].id]


async def test_a_page_that_is_silent_for_long_is_let_out(
    gate: Gate, clock: Clock
) -> None:
    cookie = await let_in(gate)
    clock.now += auth.IDLE_SECONDS
    assert gate.admit(request(cookie=cookie)).kind == "page"
    clock.now += auth.IDLE_SECONDS + 1
    assert refused(gate, request(cookie=cookie))[0] == 401


async def test_a_page_is_let_in_for_a_week_at_most(gate: Gate, clock: Clock) -> None:
    cookie = await let_in(gate)
    end = clock.now + auth.SESSION_SECONDS
    while clock.now <= end:
        assert gate.admit(request(cookie=cookie)).kind == "page"
        clock.now += auth.IDLE_SECONDS
    assert refused(gate, request(cookie=cookie))[0] == 401


async def test_of_many_pages_the_one_unseen_for_longest_is_let_out(gate: Gate) -> None:
    first, second = await let_in(gate), await let_in(gate)
    for _ in range(auth.MAX_SESSIONS - 2):
        await let_in(gate)
    gate.admit(request(cookie=first))
    await let_in(gate)
    assert gate.admit(request(cookie=first)).kind == "page"
    assert refused(gate, request(cookie=second))[0] == 401


def test_more_than_so_many_requests_a_second_are_told_to_come_again(
    clock: Clock,
) -> None:
    gate = Gate(TOKEN, COOKIE, rate=5.0, now=clock)
    asked = request(authorization=f"Bearer {TOKEN}")
    for _ in range(10):
        gate.admit(asked)
    with pytest.raises(Refusal) as caught:
        gate.admit(asked)
    answer = caught.value.response()
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    # Others have a rate of their own, and a browser can always be let in.
    assert gate.admit(request("GET", "ready")) == NOBODY
    for _ in range(100):
        gate.admit(request("GET", "login"))
    clock.now += 0.2
    gate.admit(asked)
    assert refused(gate, asked)[0] == 429


def test_who_guesses_may_do_so_only_so_often(clock: Clock) -> None:
    gate = Gate(TOKEN, COOKIE, rate=5.0, now=clock)
    guesses = (
        request(authorization="Bearer no"),
        request(cookie=f"{COOKIE}=no"),
        request("POST", "ready"),
    )
    told = [refused(gate, guesses[n % 3])[0] for n in range(12)]
    assert told == [401] * 10 + [429] * 2
    clock.now += 1.0
    assert refused(gate, guesses[0])[0] == 401


def test_who_may_not_ask_takes_nothing_from_those_who_may(clock: Clock) -> None:
    gate = Gate(TOKEN, COOKIE, rate=1.0, now=clock)
    for _ in range(100):
        refused(gate, request(authorization="Bearer no"))
    assert gate.admit(request(authorization=f"Bearer {TOKEN}")).kind == "token"
