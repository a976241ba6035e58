"""Small decisions about values: what they are at their bounds and beyond."""

from __future__ import annotations

from typing import Any

import pytest

from forge_actors.domain.agentless import Agentless
from forge_actors.domain.agents import Usage
from forge_actors.domain.controller_records import TOLD, wake_from, wake_saved
from forge_actors.domain.controllers import (
    MAX_BINDING,
    MAX_PROMPT,
    Controller,
    Limits,
    Wake,
    check_controller,
)
from forge_actors.domain.edits import Edit
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.answers import Answer, refusal
from forge_actors.domain.jobs import Budgets, Job
from forge_actors.domain.last_lines import LAST_CHARACTERS, last_lines
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.ownership import Owner, claim_of
from forge_actors.domain.picture.markup import hint
from forge_actors.domain.progress import NEW, Seen
from forge_actors.domain.redaction import redact
from forge_actors.domain.scopes import DRAIN, describe, repository_scope
from forge_actors.domain.spending import AttemptUsage, used_before
from forge_actors.domain.toml import read_table


def job(**fields: Any) -> Job:
    about: dict[str, Any] = {"id": "j1", "repo": "r1", "kind": "agent"}
    about |= {"priority": 2, "claims": (), "tokens": (), "queued_at": 100.0}
    return Job(**about | fields)


def test_a_session_has_used_what_its_attempts_told_from_its_beginning_on() -> None:
    first = AttemptUsage("j1", 1, "r1", None, "claude", Usage(10, 2, 3, 0.5), 1.0)
    later = AttemptUsage(
        *("j1", 2, "r1", None, "claude", Usage(20, 4, 6), 2.0), resumed=True
    )
    assert used_before([first, later]) == Usage(30, 6, 9, 0.5)
    assert used_before([later]) is None
    assert used_before([]) is None


def test_whoever_owns_a_store_shows_its_process_and_its_epoch() -> None:
    process = ProcessIdentity("boot", 42, 7)
    claim = claim_of(Owner(3, "i1", process, "1.0", 5.0))
    assert (claim.instance, claim.pid, claim.epoch) == ("i1", 42, 3)


def test_what_was_never_seen_busy_is_busy_for_no_time() -> None:
    assert NEW.seconds(5.0) == 0.0
    assert Seen(1, 2.0).seconds(5.0) == 3.0


def test_a_pause_says_what_ends_it() -> None:
    assert "resume --provider openai" in describe("provider:openai")
    assert "resume --repo" in describe(repository_scope("r1"))
    assert "drain --cancel" in describe(DRAIN)
    assert "resume --all" in describe("all")


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        *((401, "denied"), (403, "denied"), (407, "denied"), (451, "denied")),
        *((404, "not-found"), (410, "not-found")),
        *((408, "unavailable"), (500, "unavailable"), (503, "unavailable")),
        *((400, "malformed"), (409, "malformed"), (499, "malformed")),
        (429, "rate-limited"),
    ],
)
def test_a_refusal_of_github_is_of_a_kind_by_its_status(status: int, kind: str) -> None:
    failed = refusal(Answer(status, {}), "the issues", 0.0)
    assert failed is not None
    assert failed.kind == kind


def test_programs_of_agents_are_asked_for_only_where_somebody_can_tell() -> None:
    assert Agentless().problem_of("claude") is None
    assert not Agentless().keeps(job(agent="claude"), 5.0)
    lacking = Agentless({"claude": "claude is not installed", "codex": None}.get)
    assert lacking.problem_of("claude") == "claude is not installed"
    assert lacking.problem_of("codex") is None
    assert not lacking.keeps(job(), 5.0)
    assert not lacking.keeps(job(agent="codex"), 5.0)
    assert lacking.keeps(job(agent="claude"), 5.0)
    assert lacking.lack_of("j1") == ("claude", 5.0, "claude is not installed")


def test_the_end_of_a_line_without_a_blank_is_told_from_its_beginning() -> None:
    assert last_lines("x" * 5000) == "…" + "x" * LAST_CHARACTERS
    broken = "y" * 10 + " " + "x" * (LAST_CHARACTERS - 2)
    assert last_lines(broken) == "… " + "x" * (LAST_CHARACTERS - 2)


def test_a_hint_is_the_title_of_an_element_in_lines() -> None:
    assert hint(["a < b", "c"]) == "<title>a &lt; b\nc</title>"


def test_a_table_that_is_nested_too_deep_is_no_table() -> None:
    with pytest.raises(InvalidInput, match="nested too deep") as caught:
        read_table("a = " + "[" * 5000, "x.toml")
    assert caught.value.field == "x.toml"
    with pytest.raises(InvalidInput, match="Invalid value"):
        read_table("a = ", "x.toml")


def test_an_edit_changes_the_budgets_that_it_names() -> None:
    old = Budgets(execution=1.0, queue=2.0, admission=3.0, idle=4.0)
    assert Edit().budgets(old) == old
    assert Edit(timeout=5.0).budgets(old).execution == 5.0
    assert Edit(queue_timeout=None).budgets(old).queue is None
    assert Edit(admission_timeout=5.0).budgets(old).admission == 5.0
    assert Edit(idle_timeout=5.0).budgets(old).idle == 5.0
    changed = job(queue_budget=2.0, admission_budget=3.0)
    Edit(queue_timeout=7.0, admission_timeout=None, priority=3).apply(changed)
    assert (changed.queue_budget, changed.admission_budget) == (7.0, None)
    assert changed.priority == 3


def test_a_prompt_and_what_a_host_needs_to_know_are_bounded() -> None:
    check_controller("x" * MAX_PROMPT, MAX_BINDING)
    for prompt in ("", " \n", "x" * (MAX_PROMPT + 1)):
        with pytest.raises(InvalidInput) as caught:
            check_controller(prompt, 1)
        assert caught.value.field == "prompt"
    with pytest.raises(InvalidInput) as caught:
        check_controller("go on", MAX_BINDING + 1)
    assert caught.value.field == "binding"


def test_the_history_is_told_of_a_wake_once_something_came_of_it() -> None:
    controller = Controller("c1", "night", "r1", "h", {}, "", Limits(), None, 1.0)
    wake = Wake("w1", "c1", 4, "agent", "dispatched", "it is time", 2.0, "o", "j1")
    saved = wake_saved(controller, wake, 5.0)
    assert (saved.wake, saved.controller, saved.number) == ("w1", "c1", 4)
    assert saved.state == "dispatched"
    assert wake_from(saved.body) == wake
    event = saved.event
    assert event is not None
    assert (event.kind, event.at, event.repo) == ("controller_woken", 5.0, "r1")
    assert event.job == "j1"
    assert event.data == {
        "controller": "night",
        "wake": "w1",
        "outcome": "dispatched",
        "by": "agent",
        "reason": "it is time",
    }
    assert "dispatching" not in TOLD
    on_the_way = Wake("w1", "c1", 4, "agent", "dispatching", "", 2.0, "o")
    assert wake_saved(controller, on_the_way, 5.0).event is None


def test_what_is_assigned_is_a_secret_also_if_it_begins_with_a_dash() -> None:
    assert "hunter2hunter2" not in redact("password=-hunter2hunter2")
    assert redact("--password --verbosely-told") == "--password --verbosely-told"
