"""The routes of worktrees."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.selection import MAX_SELECTED
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.query import decode

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

#: The parameters of the list.
PARAMETERS = ("removed", "quick")


class Named(Struct, forbid_unknown_fields=True):
    """Ids of jobs, some characters of them, or branches."""

    worktrees: list[str]


class Removing(Named, forbid_unknown_fields=True):
    force: bool = False
    dry_run: bool = False


class Restoring(Struct, forbid_unknown_fields=True):
    to: str | None = None


async def listed(call: Call) -> Answer:
    views = await call.control.worktrees(
        removed=call.query.flag("removed"), looking=not call.query.flag("quick")
    )
    return json_response({"worktrees": views})


async def keep(call: Call) -> Answer:
    return await _keep(call, keep=True)


async def unkeep(call: Call) -> Answer:
    return await _keep(call, keep=False)


async def _keep(call: Call, *, keep: bool) -> Answer:
    names = _checked(decode(call.request.body, Named).worktrees)
    views = await call.control.keep_worktrees(names, keep=keep)
    return json_response({"worktrees": views})


async def remove(call: Call) -> Answer:
    wanted = decode(call.request.body, Removing)
    removed = await call.control.remove_worktrees(
        _checked(wanted.worktrees), force=wanted.force, dry_run=wanted.dry_run
    )
    return json_response({"worktrees": removed})


async def restore(call: Call) -> Answer:
    to = decode(call.request.body, Restoring).to
    if to is not None and not os.path.isabs(to):
        raise InvalidInput("to", f"{to!r} is not absolute")
    return json_response(await call.control.restore_worktree(call.parts[0], to))


def _checked(names: list[str]) -> list[str]:
    if not 1 <= len(names) <= MAX_SELECTED:
        raise InvalidInput("worktrees", f"must name 1 to {MAX_SELECTED} worktrees")
    return names
