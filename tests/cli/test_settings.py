"""`settings`: a file is checked without a service; what holds is shown and reloaded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.cli import main as program
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.settings import SettingChange, SettingView
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    Capture = pytest.CaptureFixture[str]


def call(home: Path, capsys: Capture, *words: str) -> tuple[int, str, str]:
    status = program.main([*words, "--home", str(home)])
    printed = capsys.readouterr()
    return status, printed.out, printed.err


def test_a_good_file_is_told_with_the_source_of_every_value(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORGE_MAX_HEAVY_CHECKS", "1")
    path = tmp_path / "settings.toml"
    path.write_text("[limits]\nworkers = 9\n")
    for words in (("settings", "check"), ("settings", "check", str(path))):
        status, out, err = call(tmp_path, capsys, *words)
        assert (status, err) == (0, "")
        lines = {line.split()[0]: line.split()[1:] for line in out.splitlines()}
        assert lines["limits.workers"] == ["9", "file", f"{path}:2"]
        assert lines["limits.heavy_checks"] == [
            *("1", "environment"),
            "FORGE_MAX_HEAVY_CHECKS",
        ]
        assert lines["limits.agents"] == ["4", "default"]
        assert "as limits.workers" in out
    status, out, _ = call(tmp_path, capsys, "settings", "check", "--json")
    views = {view["name"]: view for view in json.loads(out)}
    assert views["limits.workers"]["value"] == 9
    assert views["limits.repository_workers"]["value"] is None


def test_a_broken_file_is_one_line_with_its_line_and_status_2(
    tmp_path: Path, capsys: Capture
) -> None:
    path = tmp_path / "other.toml"
    path.write_text("[limits]\nwrokers = 9\n")
    status, out, err = call(tmp_path, capsys, "settings", "check", str(path))
    assert (status, out) == (2, "")
    assert err.startswith(f"forge-actors: {path}:2: limits.wrokers: is not a known")
    assert "did you mean 'workers'?" in err
    assert err.count("\n") == 1


def test_the_file_of_a_home_may_be_missing_one_that_is_named_may_not(
    tmp_path: Path, capsys: Capture
) -> None:
    status, out, err = call(tmp_path, capsys, "settings", "check")
    assert status == 0
    assert "the defaults hold" in err
    assert "limits.workers" in out
    status, out, err = call(tmp_path, capsys, "settings", "check", "no-such.toml")
    assert (status, out) == (2, "")
    assert err == "forge-actors: no-such.toml: does not exist\n"


def test_without_a_service_show_says_what_one_would_use(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "settings.toml").write_text("[limits]\nworkers = 9\n")
    status, out, err = call(tmp_path, capsys, "settings", "show")
    assert status == 0
    assert "limits.workers" in out
    assert f"no service runs on {tmp_path}" in err
    status, out, err = call(tmp_path, capsys, "settings", "reload")
    assert (status, out) == (4, "")
    assert "no service runs" in err


async def test_what_a_service_goes_by_is_shown_and_reloaded(
    tmp_path: Path, capsys: Capture
) -> None:
    async def ask(*words: str) -> tuple[int, str, str]:
        return await trio.to_thread.run_sync(call, tmp_path, capsys, *words)

    async with fake_service(tmp_path) as control:
        control.setting_views = [SettingView("limits.workers", 7, "file", "/s:1")]
        status, out, err = await ask("settings", "show")
        assert (status, err) == (0, "")
        assert out.splitlines()[1].split() == [
            "limits.workers",
            "7",
            "file",
            "/s:1",
        ]
        control.setting_changes = [
            SettingChange("limits.workers", 7, 8),
            SettingChange("limits.repository_workers", None, 2),
            SettingChange("providers.local.limit", 1, None),
            SettingChange("new.thing", 1, 2, needs_restart=True),
        ]
        status, out, err = await ask("settings", "reload")
        assert (status, err) == (0, "")
        assert out.splitlines() == [
            "limits.workers: 7 -> 8",
            "limits.repository_workers: as limits.workers -> 2",
            "providers.local.limit: 1 -> not set",
            "new.thing: 1 -> 2  (holds after a restart of the service)",
        ]
        status, out, err = await ask("settings", "reload")
        assert (status, out, err) == (0, "", "forge-actors: nothing changed\n")
        control.failure = InvalidInput("/s.toml:3: limits.workers", "0 is not allowed")
        status, out, err = await ask("settings", "reload")
        assert (status, out) == (2, "")
        assert err == "forge-actors: /s.toml:3: limits.workers: 0 is not allowed\n"
