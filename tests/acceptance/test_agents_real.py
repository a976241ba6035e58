"""The real agent programs as jobs of a real service: their states, their sessions and
what they used, on a model service of ours."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.testing.agents import NAMES
from forge_actors.testing.agents.model_api import ModelApi, serving
from forge_actors.testing.agents_contract import USED
from tests.acceptance.bench import wait_until_ended
from tests.real_agents import BIN, KEY, MARKS, arguments, variables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import LiveService

pytestmark = MARKS

#: One of them tries again by itself for a minute before it tells that it was refused.
TEST_SECONDS = 400.0
PATIENCE = 200.0
#: Seconds from which on the end of a limit is far enough away for it to be met.
AHEAD = 30
PROVIDERS = {"claude": "claude", "codex": "codex", "copilot": "github-copilot"}
TOKENS = ("input_tokens", "output_tokens", "cached_tokens")


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """In place of that of the other tests here."""

    def too_slow(*_: object) -> None:
        raise TimeoutError(f"the test took longer than {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


class Stand:
    """A service whose jobs of one agent are answered by a model service."""

    def __init__(self, service: LiveService, name: str, api: ModelApi) -> None:
        self.service = service
        self.name = name
        self.provider = PROVIDERS[name]
        self.api = api

    def submit(self, *more: str, behind: tuple[str, ...] = ()) -> str:
        # Those that no adapter lets through; the keys come from the service.
        given = variables(self.name, self.api).items()
        env = [f"{key}={value}" for key, value in given if value != KEY]
        options = [part for each in env for part in ("--env", each)]
        words = ("--repo", "app", "--agent", self.name, "--replay", "safe")
        words += (*options, *more, "--prompt", "Say done.")
        behind += arguments(self.name, self.api)
        return self.service.submit(*words, "--", *behind)

    def account(self) -> dict[str, Any]:
        found: dict[str, Any] = self.service.json("status")["providers"][self.provider]
        return found

    def used(self, job: str) -> list[dict[str, Any]]:
        """What each of its attempts used, the first one first."""
        groups = self.service.json("usage", "--by", "attempt")["groups"]
        mine = [each for each in groups if each["key"].startswith(f"{job}.")]
        mine.reverse()
        return mine

    def has_ended_well(self, job: str, *, attempts: int, session: str | None) -> str:
        """Its end is that of its last attempt, which said so; in which session."""
        end = self.service.end_of(job, PATIENCE)
        assert end["state"] == "succeeded", end
        assert end["attempt"] == attempts
        agent = end["agent"]
        assert agent["text"] == "done by the stub"
        assert agent.get("resumed", False) is (session is not None)
        assert session in (None, agent["session"])
        *earlier, last = self.used(job)
        assert len(earlier) == attempts - 1
        of = USED[self.name]
        for counted in TOKENS:
            assert last[counted] == getattr(of, counted)
            # Of one that was refused or killed some tell that it was nothing.
            assert {each[counted] for each in earlier} <= {None, 0}
        assert bool(last["cost"]) is (self.name == "claude")
        assert agent["session"]
        return str(agent["session"])


@pytest.fixture
def make_stand(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Stand]]:
    with serving() as api:

        def make(name: str) -> Stand:
            service = make_service("")
            monkeypatch.setenv("PATH", f"{BIN}{os.pathsep}{os.environ['PATH']}")
            monkeypatch.setenv("HOME", str(service.root))
            monkeypatch.setenv("TZ", "UTC")
            for key, value in variables(name, api).items():
                monkeypatch.setenv(key, value)
            service.start()
            service.add("app")
            return Stand(service, name, api)

        yield make


# The one that takes longest comes first: it waits for most of its time.
@pytest.mark.parametrize("name", sorted(NAMES, reverse=True))
def test_one_that_is_refused_for_the_moment_goes_on_by_itself(
    name: str, make_stand: Callable[[str], Stand]
) -> None:
    stand = make_stand(name)
    stand.api.play("rate")
    job = stand.submit()
    stand.service.until(job, "job_waiting_for_limit")
    stand.api.play("success")
    shown = stand.service.show(job)
    assert (shown["refused"], shown["error"]["code"]) == (1, "USAGE_LIMIT")
    assert stand.account()["state"] == "open", "it is the matter of this job"
    session = stand.service.until(job, "agent_session").data["session"]
    stand.has_ended_well(job, attempts=2, session=session)


def test_the_limit_of_codex_parks_its_job_until_it_is_reset(
    make_stand: Callable[[str], Stand],
) -> None:
    stand = make_stand("codex")
    stand.api.play("limit")
    # It tells the minute.
    reset = ((int(time.time()) + AHEAD) // 60 + 1) * 60
    stand.api.resets_at = reset
    job = stand.submit()
    closed = stand.service.until(None, "provider_closed").data
    assert (closed["reason"], closed["stated"], closed["by"]) == ("usage", True, job)
    assert closed["until"] == pytest.approx(reset, abs=1.0)
    stand.api.play("success")
    shown = stand.service.show(job)
    assert (shown["state"], shown["refused"]) == ("waiting_for_limit", 1)
    account = stand.account()
    assert (account["state"], account["closed"]["stated"]) == ("closed", True)
    session = stand.service.until(job, "agent_session").data["session"]
    stand.has_ended_well(job, attempts=2, session=session)
    starts = [
        e.at
        for e in stand.service.events()
        if (e.job, e.kind) == (job, "job_dispatched")
    ]
    assert starts[1] >= reset


@pytest.mark.parametrize("name", NAMES)
def test_one_that_succeeds_one_without_a_login_and_one_that_is_killed(
    name: str, make_stand: Callable[[str], Stand]
) -> None:
    stand = make_stand(name)
    service, api = stand.service, stand.api
    api.play("success")
    begun = stand.submit()
    session = stand.has_ended_well(begun, attempts=1, session=None)
    assert service.until(begun, "agent_session").data["session"] == session

    api.play("auth")
    refused = stand.submit()
    service.until(None, "provider_closed")
    shown = service.show(refused)
    assert (shown["state"], shown["error"]["code"]) == ("queued", "PROVIDER_AUTH")
    assert (shown["waiting"]["kind"], shown["refused"]) == ("agent", 1)
    account = stand.account()
    assert (account["state"], account["closed"]["reason"]) == ("closed", "auth")
    [item] = service.json("inbox")["items"]
    assert (item["kind"], item["job"]) == ("provider", refused)
    api.play("success")
    service.cli("resume", "--provider", stand.provider, status=0)
    first = service.until(refused, "agent_session").data["session"]
    stand.has_ended_well(refused, attempts=2, session=first)
    assert stand.account()["state"] == "open"

    # A follow-up, so that its program has kept something of the session by then.
    api.play("works")
    killed = service.cli("continue", begun, "More.", status=0).out.strip()
    pid = service.pid_of(killed)
    assert service.until(killed, "agent_session").data["session"] == session
    assert api.asked.wait(PATIENCE)
    # All of it: what is started may only be what starts the program itself.
    os.killpg(pid, signal.SIGKILL)
    assert wait_until_ended(pid)
    api.play("success")
    api.let_go.set()
    stand.has_ended_well(killed, attempts=2, session=session)


def test_what_claude_writes_is_the_result_of_its_job_and_can_be_applied(
    make_stand: Callable[[str], Stand],
) -> None:
    stand = make_stand("claude")
    service = stand.service
    stand.api.play("tool")
    file = "made by claude.txt"
    stand.api.tool = ("Bash", {"command": f"echo made > '{file}'"})
    options = ("--verify", f"test -f '{file}'")
    job = stand.submit(*options, behind=("--allowedTools", "Bash"))
    end = service.end_of(job, PATIENCE)
    assert end["state"] == "succeeded", end
    assert [each["path"] for each in service.show(job)["result"]["files"]] == [file]
    assert "+made" in service.cli("diff", job, status=0).out
    service.cli("apply", job, "--commit-first", status=0)
    assert (service.root / "app" / file).read_text() == "made\n"
