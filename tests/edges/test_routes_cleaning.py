"""The route of the clean-up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.cleaning import ClassReport
from forge_actors.domain.maintenance import CleanResult
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_run_answers_with_all_that_it_came_to(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        api.control.clean_result = CleanResult(reports=[ClassReport("logs", removed=3)])
        body = {"dry_run": True, "classes": ["logs", "jobs", "logs"]}
        status, answer = await api("POST", "/clean", body)
        assert status == 200
        assert answer["removed"] == 3
        assert answer["reports"][0]["clean_class"] == "logs"
        [asked] = api.control.cleaned
        assert (asked.dry_run, asked.classes) == (True, ("logs", "jobs"))


async def test_an_unknown_class_or_field_is_refused(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        status, message = await api.error("POST", "/clean", {"classes": ["all"]})
        assert status == 400
        assert "'all' is no class" in message
        status, _ = await api.error("POST", "/clean", {"force": True})
        assert status == 400
        assert api.control.cleaned == []
