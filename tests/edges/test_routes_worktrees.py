"""The routes of worktrees."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from tests.cli.test_worktree import worktree
from tests.edges.routes_kit import open_api

if TYPE_CHECKING:
    from pathlib import Path


async def test_worktrees_are_listed_kept_removed_and_restored(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        views = api.control.worktree_views
        views["a"], views["b"] = worktree("a", "x/a"), worktree("b", "x/b")
        views["b"] = structs.replace(views["b"], stays="a person keeps it")
        status, answer = await api("GET", "/worktrees")
        assert status == 200
        assert [(each["id"], each["size"]) for each in answer["worktrees"]] == [
            ("a", 2048),
            ("b", 2048),
        ]
        _, answer = await api("GET", "/worktrees?quick=1")
        assert answer["worktrees"][0]["size"] is None

        status, answer = await api("POST", "/worktrees/keep", {"worktrees": ["x/a"]})
        assert (status, answer["worktrees"][0]["kept"]) == (200, True)
        status, answer = await api("POST", "/worktrees/unkeep", {"worktrees": ["a"]})
        assert (status, answer["worktrees"][0]["kept"]) == (200, False)

        body = {"worktrees": ["a", "b"]}
        status, answer = await api("POST", "/worktrees/remove", body)
        assert status == 200
        gone = [(each["removed"], each["reason"]) for each in answer["worktrees"]]
        assert gone == [(True, None), (False, "a person keeps it")]
        _, answer = await api("GET", "/worktrees")
        assert [each["id"] for each in answer["worktrees"]] == ["b"]
        _, answer = await api("GET", "/worktrees?removed=1")
        assert len(answer["worktrees"]) == 2

        # The slash of a branch is not one of the path.
        status, answer = await api("POST", "/worktrees/x%2Fa/restore", {})
        assert (status, answer["path"]) == (200, views["a"].path)


async def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    async with open_api(tmp_path) as api:
        api.control.worktree_views["a"] = worktree("a")
        for verb in ("keep", "unkeep", "remove"):
            status, message = await api.error(
                "POST", f"/worktrees/{verb}", {"worktrees": []}
            )
            assert (status, "must name" in message) == (400, True)
            status, _ = await api.error(
                "POST", f"/worktrees/{verb}", {"worktrees": ["unknown"]}
            )
            assert status == 404
        status, message = await api.error(
            "POST", "/worktrees/a/restore", {"to": "somewhere"}
        )
        assert (status, "is not absolute" in message) == (400, True)
        status, message = await api.error("POST", "/worktrees/a/restore", {})
        assert (status, "not removed" in message) == (409, True)
