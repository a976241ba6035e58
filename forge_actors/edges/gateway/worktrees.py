"""The routes of worktrees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.selection import MAX_SELECTED
from forge_actors.domain.worktree_views import (
    WorktreeRemoved,
    WorktreeRestored,
    WorktreeView,
)
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

#: The parameters of the list.
PARAMETERS = ("removed", "quick")


class Chosen(Struct, forbid_unknown_fields=True):
    """Ids of jobs, some characters of them, or branches."""

    worktrees: list[str]


class Removing(Chosen, forbid_unknown_fields=True):
    force: bool = False
    dry_run: bool = False


class Restoring(Struct, forbid_unknown_fields=True):
    to: str | None = None


class Worktrees(Struct):
    """The oldest first. `next` is the value of `after` for those behind them, or
    null."""

    worktrees: list[WorktreeView]
    next: str | None = None


class Removed(Struct):
    """In the order in which they were named."""

    worktrees: list[WorktreeRemoved]


async def listed(call: Call) -> Answer:
    views = await call.control.worktrees(
        removed=call.query.flag("removed"), looking=not call.query.flag("quick")
    )
    found, behind = page(views, _place, call.query)
    return json_response(Worktrees(found, behind))


def _place(view: WorktreeView) -> str:
    return f"{view.made_at} {view.id}"


async def keep(call: Call) -> Answer:
    return await _keep(call, keep=True)


async def unkeep(call: Call) -> Answer:
    return await _keep(call, keep=False)


async def _keep(call: Call, *, keep: bool) -> Answer:
    names = _checked(decode(call.request.body, Chosen).worktrees)
    views = await call.control.keep_worktrees(names, keep=keep)
    return json_response(Worktrees(views))


async def remove(call: Call) -> Answer:
    wanted = decode(call.request.body, Removing)
    removed = await call.control.remove_worktrees(
        _checked(wanted.worktrees), force=wanted.force, dry_run=wanted.dry_run
    )
    return json_response(Removed(removed))


async def restore(call: Call) -> Answer:
    to = decode(call.request.body, Restoring).to
    if to is not None and not os.path.isabs(to):
        raise InvalidInput("to", f"{to!r} is not absolute")
    return json_response(await call.control.restore_worktree(call.parts[0], to))


def _checked(names: list[str]) -> list[str]:
    if not 1 <= len(names) <= MAX_SELECTED:
        raise InvalidInput("worktrees", f"must name 1 to {MAX_SELECTED} worktrees")
    return names


ROUTES = (
    Route(
        "GET",
        "/v1/worktrees",
        listed,
        (*PARAMETERS, *PAGED),
        says="The worktrees that are there.",
        gives=Worktrees,
    ),
    Route(
        "POST",
        "/v1/worktrees/keep",
        keep,
        says="Keep worktrees from being removed.",
        takes=Chosen,
        gives=Worktrees,
    ),
    Route(
        "POST",
        "/v1/worktrees/unkeep",
        unkeep,
        says="Let worktrees be removed again.",
        takes=Chosen,
        gives=Worktrees,
    ),
    Route(
        "POST",
        "/v1/worktrees/remove",
        remove,
        says="Save what is in worktrees and remove them now.",
        takes=Removing,
        gives=Removed,
        errors=(404, 409, 503),
        holds=True,
    ),
    Route(
        "POST",
        "/v1/worktrees/{id}/restore",
        restore,
        says="Make a worktree that was removed again.",
        takes=Restoring,
        gives=WorktreeRestored,
        holds=True,
    ),
)
