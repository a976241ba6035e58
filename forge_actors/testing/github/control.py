"""How other programs fill a GitHub for tests, and have things happen there.

POST /__fake__/seed    repositories, issues and tokens, all by id
POST /__fake__/mutate  {"close": 9012, "reason": "completed"}
POST /__fake__/fault   the fields of a `Fault`
POST /__fake__/after   {"path": ..., "nth": 1, "mutate": {...}}
GET  /__fake__/log     the requests that came
"""

from __future__ import annotations

import json
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

from forge_actors.testing.github.routes import Response

if TYPE_CHECKING:
    from forge_actors.testing.github.faults import Troubles
    from forge_actors.testing.github.world import World

PLACE = "/__fake__/"


def control(
    world: World, troubles: Troubles, method: str, path: str, body: bytes
) -> Response:
    """Do what is asked; what cannot be is 400."""
    try:
        told = _done(world, troubles, method, path.removeprefix(PLACE), body)
    except (LookupError, TypeError, ValueError) as error:
        return _answer(400, {"message": f"{type(error).__name__}: {error}"})
    return _answer(200, told)


def _done(
    world: World, troubles: Troubles, method: str, what: str, body: bytes
) -> object:
    if (method, what) == ("GET", "log"):
        return [asdict(each) for each in troubles.log]
    if method != "POST":
        raise ValueError(f"{method} {what}")
    wanted = json.loads(body)
    match what:
        case "seed":
            seed(world, wanted)
        case "mutate":
            mutate(world, wanted)
        case "fault":
            troubles.fault(**wanted)
        case "after":
            then = partial(mutate, world, wanted["mutate"])
            troubles.after(wanted["path"], then, wanted.get("nth", 1))
        case _:
            raise LookupError(what)
    return {}


def seed(world: World, wanted: dict[str, Any]) -> None:
    """Make what is described: children and blockers are ids of issues."""
    for each in wanted.get("repos", ()):
        world.repository(**each)
    for each in wanted.get("tokens", ()):
        world.token(each["token"], each.get("login", "dev"))
    children: list[tuple[int, int]] = []
    blockers: list[tuple[int, int]] = []
    for each in wanted.get("issues", ()):
        more = dict(each)
        children += [(more["id"], child) for child in more.pop("children", ())]
        blockers += [(more["id"], other) for other in more.pop("blocked_by", ())]
        world.issue(world.repositories[more.pop("repo")], more.pop("number"), **more)
    for parent, child in children:
        world.adopt(world.issues[parent], world.issues[child])
    for issue, blocker in blockers:
        world.block(world.issues[issue], world.issues[blocker])


def mutate(world: World, wanted: dict[str, Any]) -> None:
    """Have one thing happen, which is the first key."""
    what = next(iter(wanted))
    if what == "rename":
        world.rename(world.repositories[wanted[what]], wanted["name"])
        return
    issue = world.issues[wanted[what]]
    match what:
        case "close":
            world.close(issue, wanted.get("reason", "completed"))
        case "reopen":
            world.reopen(issue)
        case "touch":
            world.touch(issue)
        case "delete":
            world.delete(issue)
        case "block":
            world.block(issue, world.issues[wanted["by"]])
        case "adopt":
            world.adopt(world.issues[wanted["by"]], issue)
        case "transfer":
            to = world.repositories[wanted["to"]]
            world.transfer(issue, to, wanted["number"])
        case _:
            raise LookupError(what)


def _answer(status: int, value: object) -> Response:
    headers = {"content-type": "application/json"}
    return Response(status, json.dumps(value).encode(), headers)
