"""Readiness: nothing is ready before all of it was seen, or after some of it failed."""

from __future__ import annotations

import pytest

from forge_actors.domain.readiness import (
    DIAGNOSTICS,
    ORDER,
    STAGES,
    Diagnostic,
    Readiness,
    ReadinessIncomplete,
    answers,
)

REQUIRED: tuple[Diagnostic, ...] = (
    "database",
    "scheduler",
    "releaseCoherence",
    "endToEnd",
)


def through() -> Readiness:
    now = Readiness(REQUIRED)
    for stage in ORDER:
        now = now.enters(stage)
    return now


def test_it_is_ready_after_its_last_stage_and_not_before() -> None:
    now = Readiness(REQUIRED)
    for stage in ORDER:
        assert not now.ready
        now = now.enters(stage)
    assert now.ready
    assert {name for name, found in now.diagnostics.items() if found == "pass"} == set(
        REQUIRED
    )
    assert now.diagnostics["mcpEndToEnd"] == "not_observed"


def test_a_stage_that_began_has_not_passed() -> None:
    now = Readiness(REQUIRED).enters("database")
    assert now.diagnostics["database"] == "not_observed"
    assert now.enters("agent").diagnostics["database"] == "pass"


@pytest.mark.parametrize("name", REQUIRED)
def test_it_cannot_be_called_ready_while_something_was_not_seen(name: str) -> None:
    now = through()
    seen = {each: found for each, found in now.observed.items() if each != name}
    early = Readiness(REQUIRED, "transport", seen)
    with pytest.raises(ReadinessIncomplete, match=f"READINESS_INCOMPLETE: {name} "):
        early.enters("ready")


def test_what_a_service_offers_besides_is_asked_for_too() -> None:
    more = Readiness((*REQUIRED, "mcpEndToEnd"), "probe", through().observed)
    with pytest.raises(ReadinessIncomplete, match="mcpEndToEnd"):
        more.enters("ready")
    assert more.observes("mcpEndToEnd", "pass").enters("ready").ready


@pytest.mark.parametrize("name", DIAGNOSTICS)
def test_a_failure_takes_readiness_back_at_once(name: str) -> None:
    [found] = [each for each in DIAGNOSTICS if each == name]
    failed = through().fails("A_REASON", found)
    assert not failed.ready
    assert failed.diagnostics[found] == "fail"


def test_what_works_again_is_ready_again_and_the_reasons_stay() -> None:
    failed = through().fails("FIRST", "database").fails("SECOND", None)
    again = failed.fails("FIRST", "database").observes("database", "pass")
    assert again.ready
    assert again.reasons == ("FIRST", "SECOND")


def test_one_that_ends_is_not_ready() -> None:
    now = through()
    ending = Readiness(REQUIRED, now.stage, now.observed, ending="SIGNAL_SIGTERM")
    assert not ending.ready
    assert "SIGNAL_SIGTERM" in ending.doing


def test_every_stage_has_a_failure_of_its_own() -> None:
    codes = [part.code for part in STAGES.values()]
    assert len(set(codes)) == len(codes)


def test_a_clean_up_that_fails_keeps_nothing_from_being_executed() -> None:
    found = answers(ready=True, clean_up="it failed 5 times", release="pass")
    assert found.execution_ready
    assert not found.maintenance_healthy
    assert found.release_coherent


def test_a_release_that_nobody_can_look_up_is_neither_coherent_nor_not() -> None:
    found = answers(ready=True, clean_up=None, release="not_observed")
    assert found.release_coherent is None
    assert answers(ready=True, clean_up=None, release="fail").release_coherent is False
