"""What is kept of a home, as it is set: a table a class, checked like all settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.retention import DAY, DEFAULTS, OFF, Policy, policy_of
from forge_actors.runtime.in_force import compare
from forge_actors.runtime.settings import Settings, settings_from
from forge_actors.runtime.sources import load

if TYPE_CHECKING:
    from pathlib import Path


def policies(table: dict[str, Any]) -> dict[str, Policy]:
    return {**settings_from({"retention": table}).retention.policies()}


def test_where_nothing_is_set_the_defaults_hold() -> None:
    assert policies({}) == DEFAULTS


def test_each_class_has_a_table_of_its_own() -> None:
    found = policies(
        {
            "jobs": {"age": "2d", "count": 7, "bytes": "1G"},
            "events": {"count": 9},
            "logs": {"keep": "all"},
            "temporary": {"age": "off"},
            "preserved": {"age": "90d"},
        }
    )
    assert found["jobs"] == Policy(age=2 * DAY, count=7, bytes=1 << 30, grace=3600)
    assert found["events"] == Policy(age=90 * DAY, count=9, grace=3600)
    assert found["logs"] == OFF
    assert found["temporary"].age is None
    assert found["preserved"] == Policy(age=90 * DAY)
    assert found["backups"] == DEFAULTS["backups"]


def test_an_age_below_the_grace_is_meant() -> None:
    assert policies({"jobs": {"age": "1s"}})["jobs"].grace == 1.0
    assert policies({"jobs": {"grace": "0s", "count": 0}})["jobs"].grace == 0.0


def test_one_word_switches_all_of_it_off() -> None:
    found = policies({"keep": "all", "jobs": {"age": "1s"}})
    assert found == dict.fromkeys(DEFAULTS, OFF)


def test_a_clean_up_is_told_the_same_policies() -> None:
    settings = settings_from(
        {"retention": {"jobs": {"count": 3}, "logs": {"keep": "all"}}}
    )
    rules = settings.retention.rules()
    for name, policy in settings.retention.policies().items():
        assert policy_of(rules, name) == policy


@pytest.mark.parametrize(
    ("text", "field", "problem"),
    [
        ("[retention.job]\n", "1: retention.job", "did you mean 'jobs'"),
        ("[retention.jobs]\ncuont = 1\n", "2: retention.jobs.cuont", "'count'"),
        ("[retention.events]\nbytes = 1\n", "2: retention.events.bytes", "not a known"),
        ("[retention.jobs]\nage = 'old'\n", "2: retention.jobs.age", "no duration"),
        ("[retention.jobs]\nage = -1\n", "2: retention.jobs.age", "no duration"),
        ("[retention.jobs]\nbytes = '1X'\n", "2: retention.jobs.bytes", "no size"),
        ("[retention.jobs]\ncount = -1\n", "2: retention.jobs.count", "-1 is not"),
        ("[retention.jobs]\ncount = 'no'\n", "2: retention.jobs.count", "'no' is not"),
        ("[retention]\njobs = 3\n", "2: retention.jobs", "3 is not allowed"),
        ("[retention]\nkeep = 'none'\n", "2: retention.keep", "'none' is not"),
        ("[disk]\nwarn_free = 'x'\n", "2: disk.warn_free", "no size"),
        ("[disk]\nwarn_free = 1\nrefuse_free = 2\n", "2: disk.warn_free", "less than"),
    ],
)
def test_what_is_not_allowed_is_refused_with_its_line(
    tmp_path: Path, text: str, field: str, problem: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load(path, {})
    assert caught.value.field == f"{path}:{field}"
    assert problem in caught.value.problem


def test_it_says_what_is_allowed_instead() -> None:
    with pytest.raises(InvalidInput) as caught:
        settings_from({"retention": {"jobs": {"count": "some"}}})
    assert caught.value.allowed == ("a whole number from 0 to 1000000000 or 'off'",)
    with pytest.raises(InvalidInput) as caught:
        settings_from({"retention": {"keep": "some"}})
    assert caught.value.allowed == ("'all' or 'limits'",)
    with pytest.raises(InvalidInput) as caught:
        settings_from({"disk": {"warn_free": True}})
    assert caught.value.allowed == ("a number of bytes such as 512M or 10G",)


def test_each_value_is_shown_with_where_it_is_from(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('[retention.jobs]\nage = "2d"\n[retention]\nlogs.keep = "all"\n')
    views = {view.name: view for view in load(path, {}).views()}
    assert (views["retention.jobs.age"].value, views["retention.jobs.age"].at) == (
        "2d",
        f"{path}:2",
    )
    assert views["retention.logs.keep"].at == f"{path}:4"
    assert views["retention.jobs.count"].source == "default"
    assert views["disk.warn_free"].value == "auto"


def test_a_running_service_takes_them_over() -> None:
    new = settings_from({"retention": {"jobs": {"count": 1}}, "disk": {"warn_free": 0}})
    changes = compare(Settings(), new)
    assert {change.name: change.needs_restart for change in changes} == {
        "retention.jobs.count": False,
        "disk.warn_free": False,
    }


def test_thresholds_are_bytes_or_left_to_the_size_of_the_disk() -> None:
    assert Settings().disk.thresholds() == (None, None)
    settings = settings_from({"disk": {"warn_free": "2G", "refuse_free": "512M"}})
    assert settings.disk.thresholds() == (2 << 30, 512 << 20)
