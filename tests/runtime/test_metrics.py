"""A runtime in numbers: they are those of the jobs that were there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families as parse

from forge_actors.domain.agents import Usage
from forge_actors.domain.changes import AttemptUsed
from forge_actors.domain.spending import AttemptUsage
from forge_actors.edges.gateway.event_hub import EventHub
from forge_actors.edges.gateway.metrics import gateway_families, handler, text_of
from forge_actors.edges.gateway.server import Server
from forge_actors.runtime import control_metrics
from forge_actors.testing.control import FakeControl
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from tests.runtime.control_kit import Case

SECRET = "ghp_" + "a1B2" * 9


class Scrape:
    """The samples of one answer, by name and labels."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.samples = {
            (sample.name, *sorted(sample.labels.values())): sample.value
            for family in parse(text)
            for sample in family.samples
        }

    def __getitem__(self, key: str | tuple[str, ...]) -> float:
        return self.samples[(key,) if isinstance(key, str) else key]


async def scraped(case: Case) -> Scrape:
    body, _ = text_of(await case.control.metrics())
    return Scrape(body.decode())


async def test_the_numbers_are_those_of_the_jobs(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 2}) as case:
        ended = [
            await case.submit(kind="check"),
            await case.submit("app", "sh", "-c", f"echo {SECRET} >&2; exit 1"),
            await case.submit(),
        ]
        await case.control.wait(ended)
        held = [await case.hold(), await case.hold()]
        waits = await case.submit(after=[held[0]])
        behind = await case.submit()
        found = await scraped(case)
        assert found["forge_jobs", "running"] == 2
        assert found["forge_jobs_waiting", "dependency"] == 1
        assert found["forge_jobs_waiting", "token"] == 1
        assert found["forge_jobs_waiting", "not_asked"] == 0
        assert found["forge_tokens_used", "workers"] == 2
        assert found["forge_tokens_limit", "workers"] == 2
        assert found["forge_tokens_limit", "provider:codex"] == 3
        assert found["forge_jobs_accepted_total", "check"] == 1
        assert found["forge_jobs_accepted_total", "repository-command"] == 6
        assert found["forge_attempts_total", "succeeded"] == 2
        assert found["forge_attempts_total", "failed"] == 1
        for since in ("accepted", "queued", "dispatched"):
            assert found["forge_start_delay_seconds_count", since] == 5
        assert found["forge_attempt_seconds_count"] == 3
        last = case.control.last_event
        assert found["forge_events_uncounted"] == 0
        assert found["forge_store_commit_seconds_count"] > 5
        assert (
            found["forge_store_moves_total"] >= found["forge_attempts_total", "failed"]
        )
        assert found["forge_store_saving"] == 1
        assert found["forge_repositories_known"] == 1
        assert found["forge_actor_failures_total", "repository"] == 0
        # Asked again, nothing counts twice.
        again = await scraped(case)
        assert again["forge_attempts_total", "failed"] == 1
        assert again["forge_events_total"] == found["forge_events_total"] <= last
        await case.end(waits, behind, *held)
        assert (await scraped(case))["forge_attempts_total", "cancelled"] == 2


async def test_no_name_of_a_job_and_no_secret_is_in_it(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        await case.add("hidden-repository")
        script = f"echo {SECRET} >&2; exit 1"
        job = await case.submit(
            "hidden-repository", "sh", "-c", script, name="hidden-name", labels=["hid"]
        )
        await case.control.wait([job])
        text = (await scraped(case)).text
        for word in ("hidden", "hid", SECRET, job, str(tmp_path)):
            assert word not in text
        # What a label can say does not grow with what jobs say.
        assert len(text.splitlines()) < 400


async def test_a_long_history_is_counted_in_parts_however_many_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_metrics, "COUNTED_TOGETHER", 2)
    monkeypatch.setattr(control_metrics, "COUNTED_AT_ONCE", 10)
    async with controlled(tmp_path) as case:
        jobs = [await case.submit() for _ in range(10)]
        await case.control.wait(jobs)
        first = await scraped(case)
        assert first["forge_events_uncounted"] > 0
        answers: list[Scrape] = []

        async def ask() -> None:
            answers.append(await scraped(case))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(ask)
        last = await scraped(case)
        assert last["forge_events_uncounted"] == 0
        assert last["forge_attempts_total", "succeeded"] == 10
        assert last["forge_start_delay_seconds_count", "accepted"] == 10


async def test_only_so_many_jobs_are_asked_what_they_wait_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control_metrics, "ASKED_AT_ONCE", 3)
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        held = await case.hold()
        waiting = [await case.submit() for _ in range(5)]
        found = await scraped(case)
        assert found["forge_jobs_waiting", "token"] == 3
        assert found["forge_jobs_waiting", "not_asked"] == 2
        await case.end(held, *waiting)


async def test_every_metric_is_in_the_documentation(tmp_path: Path) -> None:
    text = (Path(__file__).parents[2] / "design" / "metrics.md").read_text()
    documented = set(re.findall(r"forge_\w+", text))
    async with controlled(tmp_path) as case:
        control = FakeControl()
        server, hub = Server(handler(control, list)), EventHub(control, 7)
        own = gateway_families({"socket": server}, hub)
        families = [*await case.control.metrics(), *own]
    there = {f.name + "_total" * (f.kind == "counter") for f in families}
    assert there == documented


async def test_what_agents_used_is_told_by_provider(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit()
        await case.control.wait([job])
        store, now = case.control._store, case.control._clock.wall()
        for number, provider, usage in (
            (1, "codex", Usage(100, 7, 3, 0.5)),
            (2, "codex", Usage(1, None, None, None)),
            (3, None, Usage(5, 1, 0, 0.25)),
        ):
            row = AttemptUsage(job, number, "r", provider, "a", usage, now + number)
            store.save([AttemptUsed(row)])
        early = AttemptUsage(job, 9, "r", "codex", "a", Usage(1000), now - 1000)
        await store.save([AttemptUsed(early)]).wait()
        found = await scraped(case)
        assert found["forge_agent_attempts_total", "codex"] == 2
        assert found["forge_agent_tokens_total", "codex", "input"] == 101
        assert found["forge_agent_tokens_total", "codex", "output"] == 7
        assert found["forge_agent_tokens_total", "cached", "none"] == 0
        assert found["forge_agent_cost_dollars_total", "codex"] == 0.5
        assert found["forge_agent_cost_dollars_total", "none"] == 0.25
