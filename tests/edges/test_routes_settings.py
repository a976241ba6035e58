"""The routes of the settings: what holds, and reading it again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, Refused, StoreFailed
from forge_actors.domain.settings import SettingChange, SettingView
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path


async def test_every_setting_says_where_it_is_from(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        api.control.setting_views = [
            SettingView("limits.workers", 4, "default"),
            SettingView("limits.agents", 2, "environment", "FORGE_MAX_AGENT_PROCESSES"),
        ]
        status, answer = await api("GET", "/settings")
        assert status == 200
        assert answer["settings"] == [
            {"name": "limits.workers", "value": 4, "source": "default", "at": None},
            {
                "name": "limits.agents",
                "value": 2,
                "source": "environment",
                "at": "FORGE_MAX_AGENT_PROCESSES",
            },
        ]


async def test_a_reload_answers_with_what_changed(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        api.control.setting_changes = [SettingChange("limits.workers", 4, None)]
        status, answer = await api("POST", "/settings/reload")
        assert status == 200
        changed = {"name": "limits.workers", "old": 4, "new": None}
        assert answer == {"changed": [{**changed, "needs_restart": False}]}
        assert await api("POST", "/settings/reload") == (200, {"changed": []})


async def test_a_reload_that_is_refused_says_why(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        for error, status in (
            (InvalidInput("/h/settings.toml:2: limits.x", "is no"), 400),
            (Refused("given by the program"), 409),
            (StoreFailed("disk full"), 503),
        ):
            api.control.failure = error
            assert await api.error("POST", "/settings/reload") == (status, str(error))
        status, message = await api.error("GET", "/settings/reload")
        assert (status, "POST" in message) == (405, True)
