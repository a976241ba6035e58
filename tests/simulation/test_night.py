"""A night in simulated time: sixty jobs of agents, three providers, crashes of all."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.accounts import Accounts
from forge_actors.runtime import admission
from forge_actors.testing.simulation import run
from forge_actors.testing.simulation.night import JOBS, PROVIDERS, draw_night

if TYPE_CHECKING:
    from forge_actors.domain.events import Event
    from forge_actors.testing.simulation import Result

#: The suite runs these; the environment `simulation` of tox runs more.
SEEDS = (0, 1, 2)
ENDS = ("succeeded", "failed", "timed_out", "cancelled", "human_attention_required")


@cache
def night_of(seed: int) -> Result:
    return run(draw_night(seed))


@pytest.mark.parametrize("seed", SEEDS)
def test_every_job_ends_once_and_everything_holds(seed: int) -> None:
    night = night_of(seed)
    assert night.violation is None
    ends = Counter(
        event.job
        for event in night.events
        if event.kind.removeprefix("job_") in (*ENDS, "orphaned", "stale")
    )
    assert len(ends) == JOBS
    assert set(ends.values()) == {1}
    # It was no quiet night: the service, the node agent and the machine crashed.
    told = [what for _, *what in night.trace]
    assert ["power"] in told
    assert sum(what[:1] == ["agent starts"] for what in told) > 2
    kinds = Counter(event.kind for event in night.events)
    assert kinds["runtime_started"] > 4
    assert kinds["job_succeeded"] > JOBS // 3
    closed = {e.data["provider"] for e in night.events if e.kind == "provider_closed"}
    assert closed <= set(PROVIDERS)
    assert closed


def test_nights_have_all_that_they_are_about() -> None:
    """No rule holds only because there was nothing that could break it."""
    events: list[Event] = [e for seed in SEEDS for e in night_of(seed).events]
    kinds = Counter(event.kind for event in events)
    for kind in (
        "job_waiting_for_limit",
        "job_waiting_for_approval",
        "job_waiting_for_heavy_check",
        "job_waiting_for_retry",
        "job_human_attention_required",
        "provider_opened",
    ):
        assert kinds[kind], kind
    steps = Counter(event.data.get("step") for event in events)
    assert steps["check"] > steps["mend"] > 0


def test_an_agent_in_the_folder_of_another_one_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Were nothing claimed, nothing else would say that they are apart."""
    monkeypatch.setattr(admission, "claims_of", lambda *_: ())
    found = run(draw_night(0)).violation
    assert found is not None
    assert found.rule == "one agent a folder"


def test_an_attempt_on_a_closed_account_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Accounts, "closed_tokens", lambda *_: frozenset())
    found = run(draw_night(0)).violation
    assert found is not None
    assert found.rule in ("closed means closed", "one job tries")
