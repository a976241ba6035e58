"""Settings: taken whole or refused whole, whoever gave them, with what is allowed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.open_files import OpenFiles
from forge_actors.runtime.service import client_limits
from forge_actors.runtime.settings import (
    GatewaySettings,
    Settings,
    load_settings,
    settings_from,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "settings.toml"


def test_without_a_file_the_defaults_hold(path: Path) -> None:
    settings = load_settings(path, {})
    assert settings == Settings()
    assert load_settings(None, {}) == settings
    limits = settings.token_limits()
    assert limits.tokens == {
        "workers": 4,
        "heavy_checks": 2,
        "agents": 4,
        "provider:codex": 3,
        "provider:claude": 2,
        "provider:github-copilot": 2,
    }
    assert limits.active_repositories == 4
    assert limits.pressure_workers == 1
    assert limits.overtake_after == settings.overtake_after == 1800.0
    assert settings.repository_workers == 4
    assert settings.output.stream_bytes == 16 * 1024 * 1024


def test_a_file_overrules_the_defaults_and_the_environment_the_file(
    path: Path,
) -> None:
    path.write_text(
        """
        [limits]
        workers = 8
        agents = 3
        repository_workers = 2
        [scheduling]
        overtake_after = "10m"
        [providers.local]
        limit = 5
        [providers.claude]
        limit = 1
        """
    )
    environ = {"FORGE_MAX_WORKERS": "16", "FORGE_MAX_LOCAL_PROCESSES": "6"}
    settings = load_settings(path, environ)
    assert settings.limits.workers == 16
    assert settings.limits.agents == 3
    assert settings.repository_workers == 2
    assert settings.overtake_after == 600
    tokens = settings.token_limits().tokens
    assert tokens["provider:local"] == 6
    assert tokens["provider:claude"] == 1
    assert tokens["provider:codex"] == 3  # what a file does not name keeps its limit


VARIABLES = {
    "FORGE_MAX_WORKERS": ("limits", "workers"),
    "FORGE_MAX_ACTIVE_REPOS": ("limits", "active_repositories"),
    "FORGE_MAX_HEAVY_CHECKS": ("limits", "heavy_checks"),
    "FORGE_MAX_AGENT_PROCESSES": ("limits", "agents"),
    "FORGE_PER_REPO_WORKERS": ("limits", "repository_workers"),
}


@pytest.mark.parametrize("variable", VARIABLES)
def test_a_variable_sets_its_limit_and_one_is_the_least(
    variable: str, path: Path
) -> None:
    section, name = VARIABLES[variable]
    settings = load_settings(path, {variable: "1"})
    assert getattr(getattr(settings, section), name) == 1
    for wrong in ("0", "-1", "10001"):
        with pytest.raises(InvalidInput) as caught:
            load_settings(path, {variable: wrong})
        assert caught.value.field == f"{variable}.{section}.{name}"
    with pytest.raises(InvalidInput, match=f"{variable}: 'many' is no number"):
        load_settings(path, {variable: "many"})


@pytest.mark.parametrize(
    ("variable", "provider"),
    [
        ("FORGE_MAX_CODEX_PROCESSES", "codex"),
        ("FORGE_MAX_CLAUDE_PROCESSES", "claude"),
        ("FORGE_MAX_GITHUB_PROCESSES", "github-copilot"),
    ],
)
def test_a_provider_has_its_variable(variable: str, provider: str) -> None:
    settings = load_settings(None, {variable: "9"})
    assert settings.providers[provider].limit == 9
    with pytest.raises(InvalidInput, match=variable):
        load_settings(None, {variable: "0"})


def test_pressure_has_its_variables() -> None:
    environ = {"FORGE_MIN_FREE_MEMORY_MB": "64", "FORGE_MAX_LOAD_PER_CPU": "0.25"}
    settings = load_settings(None, environ)
    assert settings.pressure.min_free_memory_mb == 64
    assert settings.pressure.max_load_per_cpu == 0.25
    for name, value in {
        "FORGE_MIN_FREE_MEMORY_MB": "63",
        "FORGE_MAX_LOAD_PER_CPU": "0.24",
    }.items():
        with pytest.raises(InvalidInput, match=name):
            load_settings(None, {name: value})


MINIMUMS: list[tuple[dict[str, Any], str]] = [
    ({"limits": {"workers": 0}}, "limits.workers"),
    ({"limits": {"active_repositories": 0}}, "limits.active_repositories"),
    ({"limits": {"queued_jobs": 0}}, "limits.queued_jobs"),
    ({"limits": {"workers": 1.5}}, "limits.workers"),
    ({"limits": {"workers": "4"}}, "limits.workers"),
    ({"limits": {"workers": True}}, "limits.workers"),
    ({"pressure": {"min_free_memory_mb": 63}}, "pressure.min_free_memory_mb"),
    ({"pressure": {"max_load_per_cpu": 0.2}}, "pressure.max_load_per_cpu"),
    ({"pressure": {"pressure_workers": 0}}, "pressure.pressure_workers"),
    ({"output": {"stream_bytes": 65535}}, "output.stream_bytes"),
    ({"providers": {"codex": {"limit": 0}}}, "limit"),
    ({"scheduling": {"overtake_after": "soon"}}, "scheduling.overtake_after"),
    ({"scheduling": {"overtake_after": -1}}, "scheduling.overtake_after"),
    ({"providers": {"No Such": {"limit": 1}}}, "providers.No Such"),
    ({"limits": 4}, "limits"),
]


@pytest.mark.parametrize(("table", "field"), MINIMUMS)
def test_a_value_that_is_not_allowed_is_refused_by_name(
    table: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings_from(table)
    assert field in str(caught.value)


def test_an_unknown_name_is_refused_with_the_nearest_one(path: Path) -> None:
    path.write_text("[limits]\nwrokers = 3\n")
    with pytest.raises(InvalidInput) as caught:
        load_settings(path, {})
    assert caught.value.field == f"{path}.limits.wrokers"
    assert "did you mean 'workers'" in caught.value.problem
    path.write_text("[limit]\nworkers = 3\n")
    with pytest.raises(InvalidInput, match=r"limit: is not .*did you mean 'limits'"):
        load_settings(path, {})
    path.write_text("[providers.codex]\nlimits = 3\n")
    with pytest.raises(InvalidInput, match="limits"):
        load_settings(path, {})


def test_one_wrong_value_refuses_all_of_them(path: Path) -> None:
    path.write_text("[limits]\nworkers = 9\nagents = 0\n")
    with pytest.raises(InvalidInput):
        load_settings(path, {})
    with pytest.raises(InvalidInput):
        load_settings(None, {"FORGE_MAX_WORKERS": "9", "FORGE_MAX_HEAVY_CHECKS": "0"})


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    path.write_text("[limits\n")
    with pytest.raises(InvalidInput, match=r"settings\.toml: is no valid TOML"):
        load_settings(path, {})
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInput, match="no valid TOML"):
        load_settings(path, {})
    path.unlink()
    path.mkdir()
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        load_settings(path, {})


def test_other_variables_are_nobodys_business(path: Path) -> None:
    environ = {"PATH": "/bin", "FORGE_JOB_ID": "1", "MAX_WORKERS": "x"}
    assert load_settings(path, environ) == Settings()


def test_a_misspelt_limit_is_refused_with_the_nearest_name(path: Path) -> None:
    with pytest.raises(InvalidInput, match="did you mean FORGE_MAX_WORKERS"):
        load_settings(path, {"FORGE_MAX_WORKER": "3"})


def test_short_requests_always_have_a_place_left(path: Path) -> None:
    gateway = Settings().gateway
    assert (gateway.held_requests, gateway.connections) == (256, 384)
    path.write_text("[gateway]\nheld_requests = 500\n")
    with pytest.raises(InvalidInput, match=r"gateway\.connections: must be more than"):
        load_settings(path, {})
    path.write_text("[gateway]\nheld_requests = 500\nconnections = 501\n")
    assert load_settings(path, {}).gateway.connections == 501


def test_there_are_no_more_clients_than_files_for_them() -> None:
    gateway = Settings().gateway
    limits = client_limits(gateway, OpenFiles(1024))
    assert (limits.held, limits.connections) == (256, 384)
    limits = client_limits(gateway, OpenFiles(128))
    assert (limits.held, limits.connections) == (53, 80)
    limits = client_limits(GatewaySettings(10, 200), OpenFiles(64))
    assert (limits.held, limits.connections) == (10, 16)
    limits = client_limits(gateway, OpenFiles(None))
    assert limits.connections == 384
