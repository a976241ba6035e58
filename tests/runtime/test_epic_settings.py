"""The settings of EPIC mode: refused by name, and bound to the work they began."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.runtime.epic_environment import check_programs, worker_environment
from forge_actors.runtime.epic_settings import (
    EpicSettings,
    parallel,
    with_agent,
)
from forge_actors.runtime.settings import settings_from

if TYPE_CHECKING:
    from pathlib import Path

REFUSED: list[tuple[dict[str, Any], str]] = [
    *[({"max_parallel": value}, "epic.max_parallel") for value in (0, 17, True, "2")],
    ({"max_parallel": 1.0}, "epic.max_parallel"),
    ({"poll_interval": "0.5s"}, "epic.poll_interval"),
    ({"poll_interval": "2d"}, "epic.poll_interval"),
    ({"stop_grace": -1}, "epic.stop_grace"),
    ({"satisfied_by": ["closed"]}, "epic.satisfied_by[0]"),
    ({"effects": ["merge"]}, "epic.effects[0]"),
    ({"effects": ["pull_request"]}, "epic.effects"),
    ({"branch": "epic-{epic}"}, "epic.branch"),
    ({"branch": "{issue}-{job}"}, "epic.branch"),
    ({"branch": "{issue}.lock"}, "epic.branch"),
    ({"base": "-x"}, "epic.base"),
    ({"remote": "--upload-pack=x"}, "epic.remote"),
    ({"check_rounds": -1}, "epic.check_rounds"),
    ({"failures": 0}, "epic.failures"),
    ({"merge": True}, "epic.merge"),
    ({"phases": {"deploy": {}}}, "epic.phases.deploy"),
    ({"phases": {"check": {"agent": "claude"}}}, "epic.phases.check.agent"),
    ({"phases": {"check": {"argv": [""]}}}, "epic.phases.check.argv"),
    ({"phases": {"review": {"agent": " "}}}, "epic.phases.review.agent"),
    ({"phases": {"review": {"timeout": "0s"}}}, "epic.phases.review.timeout"),
    ({"phases": {"review": {"argv": ["a\0b"]}}}, "epic.phases.review.argv"),
    ({"phases": {"review": {"argv": ["x"] * 300}}}, "epic.phases.review.argv"),
]


@pytest.mark.parametrize(("table", "field"), REFUSED)
def test_what_cannot_be_is_refused_by_name(table: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings_from({"epic": table})
    assert caught.value.field == field


def test_the_defaults_pass_every_phase_by_but_need_one_that_works() -> None:
    epic = settings_from({}).epic
    assert (epic.max_parallel, epic.poll_seconds, epic.grace_seconds) == (3, 60, 30)
    assert epic.plan().phases == frozenset()
    assert not epic.plan().publishes
    with pytest.raises(InvalidInput, match="--agent NAME"):
        epic.check_ready()
    ready = with_agent(epic, "claude")
    ready.check_ready()
    assert ready.plan().phases == {"implement", "review"}
    assert epic.branch_of(7, 12) == "forge/epic-7/issue-12"


def test_a_grace_of_nothing_is_allowed() -> None:
    assert settings_from({"epic": {"stop_grace": 0}}).epic.grace_seconds == 0


@pytest.mark.parametrize("wanted", [True, False, 0, 17, -1, 1.0, "2"])
def test_a_number_of_workers_that_cannot_be_names_both_bounds(wanted: object) -> None:
    with pytest.raises(InvalidInput, match=r"1 to 16"):
        parallel(wanted, EpicSettings())
    with pytest.raises(InvalidInput, match=r"1 to 16"):
        settings_from({"epic": {"max_parallel": 17}})


def test_a_number_of_workers_that_was_given_counts_before_the_setting() -> None:
    assert parallel(None, EpicSettings(max_parallel=5)) == 5
    assert parallel(1, EpicSettings(max_parallel=5)) == 1
    assert parallel(16, EpicSettings()) == 16


def test_an_agent_that_was_named_takes_the_place_of_commands() -> None:
    table = {"argv": ["make"], "timeout": "2h"}
    epic = settings_from({"epic": {"phases": {"implement": table}}}).epic
    named = with_agent(epic, "codex").phases.implement
    assert (named.agent, named.argv, named.timeout) == ("codex", (), "2h")
    assert with_agent(epic, None) is epic
    with pytest.raises(InvalidInput):
        with_agent(epic, "")


def test_the_digest_is_of_what_decides_about_the_work_and_not_of_the_pace() -> None:
    one = EpicSettings()
    pace = EpicSettings(max_parallel=9, poll_interval="5s", stop_grace=0)
    assert pace.digest() == one.digest()
    others = [
        EpicSettings(effects=("push",)),
        EpicSettings(check_rounds=4),
        EpicSettings(base="main"),
        with_agent(one, "claude"),
        with_agent(one, "codex"),
    ]
    assert len({each.digest() for each in (one, *others)}) == 6


def test_every_setting_is_shown_by_its_name() -> None:
    phases = {"check": {"argv": ["make", "test"]}}
    values = settings_from({"epic": {"phases": phases}}).values()
    assert values["epic.max_parallel"] == 3
    assert values["epic.phases.check.argv"] == ["make", "test"]
    assert values["epic.phases.implement.agent"] is None
    assert values["epic.effects"] == []


def test_a_worker_has_the_keys_of_its_agents_and_no_other_secret() -> None:
    environ = {
        "PATH": "/bin",
        "ANTHROPIC_API_KEY": "k1",
        "OPENAI_API_KEY": "k2",
        "FORGE_CLAUDE_EXECUTABLE": "/opt/claude",
        "GH_TOKEN": "t",
        "GITHUB_TOKEN": "t",
        "GITHUB_API_URL": "https://ghe.example/api/v3",
        "GIT_SSH_COMMAND": "ssh -i key",
        "GIT_DIR": "/elsewhere",
        "SOMETHING": "else",
    }
    known = worker_environment(with_agent(EpicSettings(), "claude"), environ)
    assert set(known) == {
        *("PATH", "ANTHROPIC_API_KEY", "FORGE_CLAUDE_EXECUTABLE"),
        *("GITHUB_API_URL", "GIT_SSH_COMMAND"),
    }
    both = worker_environment(with_agent(EpicSettings(), "claude, codex"), environ)
    assert both["OPENAI_API_KEY"] == "k2"
    assert "ANTHROPIC_API_KEY" not in worker_environment(EpicSettings(), environ)
    with pytest.raises(InvalidInput):
        worker_environment(with_agent(EpicSettings(), "nobody"), environ)


def test_a_phase_whose_agent_is_nowhere_is_refused_before_it_waits(
    tmp_path: Path,
) -> None:
    environ = {"PATH": str(tmp_path)}
    with pytest.raises(Refused, match="implement: the program 'claude'"):
        check_programs(with_agent(EpicSettings(), "claude"), environ)
    (tmp_path / "codex").write_text("#!/bin/sh\n")
    (tmp_path / "codex").chmod(0o755)
    check_programs(with_agent(EpicSettings(), "claude, codex"), environ)
    check_programs(with_agent(EpicSettings(), "command"), environ)
    check_programs(EpicSettings(), environ)
