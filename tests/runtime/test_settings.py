"""Settings: taken whole or refused whole, whoever gave them, with what is allowed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.open_files import OpenFiles
from forge_actors.runtime.gateway_settings import GatewaySettings
from forge_actors.runtime.interface import client_limits
from forge_actors.runtime.settings import Settings, checked, settings_from
from forge_actors.runtime.sources import given, load, overruled

if TYPE_CHECKING:
    from collections.abc import Mapping


def load_settings(path: Path | None, environ: Mapping[str, str]) -> Settings:
    return load(path or Path("/nowhere/settings.toml"), environ).settings


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
        assert caught.value.field == variable
        assert f"{wrong} is not allowed for {section}.{name}" in caught.value.problem
        assert caught.value.allowed == ("a whole number from 1 to 10000",)
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
    ({"providers": {"codex": {"limit": 0}}}, "providers.codex.limit"),
    ({"providers": {"codex": {"limits": 1}}}, "providers.codex.limits"),
    ({"providers": {"codex": 3}}, "providers.codex"),
    ({"providers": 3}, "providers"),
    ({"scheduling": {"overtake_after": "soon"}}, "scheduling.overtake_after"),
    ({"scheduling": {"overtake_after": -1}}, "scheduling.overtake_after"),
    ({"scheduling": {"overtake_after": True}}, "scheduling.overtake_after"),
    ({"pressure": {"max_load_per_cpu": float("nan")}}, "pressure.max_load_per_cpu"),
    ({"output": {"stream_bytes": 1 << 41}}, "output.stream_bytes"),
    ({"providers": {"No Such": {"limit": 1}}}, "providers.No Such"),
    ({"limits": 4}, "limits"),
    ({"worktrees": {"branch": "a b"}}, "worktrees.branch"),
    ({"worktrees": {"branch": "{what}"}}, "worktrees.branch"),
    ({"worktrees": {"automatic": 3}}, "worktrees.automatic"),
    ({"worktrees": {"make_timeout": "0s"}}, "worktrees.make_timeout"),
]


@pytest.mark.parametrize(("table", "field"), MINIMUMS)
def test_a_value_that_is_not_allowed_is_refused_by_name(
    table: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as caught:
        settings_from(table)
    assert caught.value.field == field


UNKNOWN = [
    ("[limits]\nagents = 1\nwrokers = 3\n", "3: limits.wrokers", "workers"),
    ("[limit]\nworkers = 3\n", "1: limit", "limits"),
    ("workers.limits = 3\n", "1: workers", None),
    ("[providers]\ncodex = { limits = 3 }\n", "2: providers.codex.limits", "limit"),
    ('[providers."local"]\nlimits = 3\n', "2: providers.local.limits", "limit"),
    ("limits.wokers = 3\n", "1: limits.wokers", "workers"),
]


@pytest.mark.parametrize(("text", "place", "near"), UNKNOWN)
def test_an_unknown_name_is_refused_with_its_line_and_the_nearest_one(
    text: str, place: str, near: str | None, path: Path
) -> None:
    path.write_text(text)
    with pytest.raises(InvalidInput) as caught:
        load_settings(path, {})
    assert caught.value.field == f"{path}:{place}"
    assert (f"did you mean {near!r}" in caught.value.problem) == (near is not None)
    assert near is None or near in caught.value.allowed


def test_a_wrong_value_is_refused_with_its_line_and_what_is_allowed(
    path: Path,
) -> None:
    path.write_text("# mine\n[limits]\nworkers = 2\n\n[providers.codex]\nlimit = 0\n")
    with pytest.raises(InvalidInput) as caught:
        load_settings(path, {})
    assert str(caught.value) == (
        f"{path}:6: providers.codex.limit: 0 is not allowed"
        " (allowed: a whole number from 1 to 10000)"
    )


def test_one_wrong_value_refuses_all_of_them(path: Path) -> None:
    path.write_text("[limits]\nworkers = 9\nagents = 0\n")
    with pytest.raises(InvalidInput):
        load_settings(path, {})
    with pytest.raises(InvalidInput):
        load_settings(None, {"FORGE_MAX_WORKERS": "9", "FORGE_MAX_HEAVY_CHECKS": "0"})


BROKEN: list[tuple[bytes, str]] = [
    (b"a = 1\n[limits\n", ":2: is no valid TOML: Expected ']'"),
    (b"a = 1\na = 2\n", ":2: is no valid TOML: Cannot overwrite a value"),
    (b"a = [", ": is no valid TOML: "),
    (b"a = 1\n\xff", ":2: is no valid TOML: it is not UTF-8"),
    (b"a = " + b"[" * 5000, ": is no valid TOML: it is nested too deep"),
    (b"a = " + b"9" * 5000, ": is no valid TOML: "),
    (b"#" * (1024 * 1024 + 1), ": has more than 1048576 bytes"),
]


@pytest.mark.parametrize(("content", "problem"), BROKEN)
def test_a_file_that_is_no_toml_is_refused_with_its_line(
    content: bytes, problem: str, path: Path
) -> None:
    path.write_bytes(content)
    with pytest.raises(InvalidInput) as caught:
        load_settings(path, {})
    assert str(caught.value).startswith(f"{path}{problem}")


def test_a_file_that_cannot_be_read_is_named(path: Path) -> None:
    path.mkdir()
    with pytest.raises(InvalidInput, match="cannot be read: Is a directory"):
        load_settings(path, {})
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(InvalidInput, match="is no plain file"):
        load_settings(path, {})
    path.unlink()
    path.symlink_to("nowhere")
    with pytest.raises(InvalidInput, match="is a link to nothing"):
        load_settings(path, {})


def test_every_setting_says_where_it_is_from(path: Path) -> None:
    path.write_text(
        "limits.workers = 8\n[providers]\nlocal = {}\n"
        "[scheduling]\novertake_after = '10m'\n"
    )
    environ = {"FORGE_MAX_LOCAL_PROCESSES": "6", "FORGE_MAX_WORKERS": "9"}
    views = {view.name: view for view in load(path, environ).views()}
    found = {
        name: (view.value, view.source, view.at)
        for name, view in views.items()
        if view.source != "default"
    }
    assert found == {
        "limits.workers": (9, "environment", "FORGE_MAX_WORKERS"),
        "providers.local.limit": (6, "environment", "FORGE_MAX_LOCAL_PROCESSES"),
        "scheduling.overtake_after": ("10m", "file", f"{path}:5"),
    }
    assert views["limits.agents"].value == 4
    assert set(views) == {*Settings().values(), "providers.local.limit"}
    path.write_text("[providers]\nlocal = {}\n")
    views = {view.name: view for view in load(path, {}).views()}
    assert views["providers.local.limit"].at == f"{path}:2"


def test_settings_of_a_program_say_so_and_may_be_overruled() -> None:
    loaded = overruled(given(Settings()), {"FORGE_MAX_WORKERS": "1"})
    sources = {view.name: view.source for view in loaded.views()}
    assert sources.pop("limits.workers") == "environment"
    assert set(sources.values()) == {"program"}


def test_settings_that_a_program_made_are_checked() -> None:
    with pytest.raises(InvalidInput, match="limits: 3 is not allowed"):
        checked(Settings(limits=3))  # type: ignore[arg-type]
    assert checked(Settings()) == Settings()


def test_two_providers_may_share_a_variable() -> None:
    settings = settings_from({"providers": {"a.b": {}, "a-b": {}}})
    found = overruled(given(settings), {"FORGE_MAX_A_B_PROCESSES": "7"}).settings
    assert [found.providers[name].limit for name in ("a.b", "a-b")] == [7, 7]


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
