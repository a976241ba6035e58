"""What every store keeps of the runs of EPICs, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.epic.runs import (
    EpicRequest,
    EpicRun,
    epic_event,
    saved,
    set_aside,
)
from forge_actors.domain.epic_changes import EpicsForgotten

if TYPE_CHECKING:
    from forge_actors.domain.epic_changes import EpicSaved
    from forge_actors.testing.inbox_contract import Open


def run(key: str, request: str | None = None) -> EpicRun:
    asked = EpicRequest("https://github.com/o/r/issues/1", "main", request_id=request)
    return EpicRun(key, asked, "repo", "cli", 1.0)


def began(key: str, request: str | None = None) -> EpicSaved:
    one = run(key, request)
    return saved(one, epic_event("epic_began", one, 1.0))


def over(key: str, request: str | None = None) -> EpicSaved:
    one = structs.replace(run(key, request), state="ended", reason="completed")
    return saved(structs.replace(one, ended=2.0))


async def check_a_run_of_an_epic_is_kept_as_it_was_saved_last(open_: Open) -> None:
    async with open_() as store:
        waits = structs.replace(run("1a"), state="waiting", why="the repository")
        changes = [began("1b"), began("1a"), saved(waits), began("1c"), over("1c")]
        await store.save(changes).wait()
    async with open_() as store:
        assert store.epic("1a") == saved(waits).body
        assert store.epic("1c") == over("1c").body
        assert store.epic("1") is None
        assert store.active_epics() == ["1a", "1b"]


async def check_the_oldest_runs_that_have_ended_are_forgotten(open_: Open) -> None:
    async with open_() as store:
        keys = ("1a", "1b", "1c", "1d", "1e")
        await store.save([began(key, f"of {key}") for key in keys]).wait()
        ended = [over(key, f"of {key}") for key in ("1e", "1b", "1c", "1d")]
        await store.save([*ended, EpicsForgotten(2)]).wait()
        assert [key for key in keys if store.epic(key)] == ["1a", "1d", "1e"]
        assert store.active_epics() == ["1a"]
        assert store.epic_of_request("of 1c") is None
        assert store.epic_of_request("of 1d") == "1d"


async def check_the_request_of_an_epic_is_known_once_it_is_saved(open_: Open) -> None:
    async with open_() as store:
        assert store.epic_of_request("once") is None
        move = store.save([began("1a", "once"), began("1b")])
        assert store.epic_of_request("once") == "1a"
        assert store.epic("1a") == began("1a", "once").body
        await move.wait()
        await store.save([over("1a", "once")]).wait()
        await store.save([set_aside("1a", b"{")]).wait()
        assert (store.epic("1a"), store.active_epics()) == (b"{", ["1b"])
        assert store.epic_of_request("once") == "1a"


CHECKS = (
    check_a_run_of_an_epic_is_kept_as_it_was_saved_last,
    check_the_oldest_runs_that_have_ended_are_forgotten,
    check_the_request_of_an_epic_is_known_once_it_is_saved,
)
