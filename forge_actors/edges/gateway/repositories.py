"""The routes of repositories."""

from __future__ import annotations

import os
from operator import attrgetter
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct, structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.query import Nothing, decode
from forge_actors.edges.gateway.route import Route
from forge_actors.edges.gateway.tags import with_steady_tag

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

View = TypeVar("View", bound=RepositoryView)


class NewRepository(Struct, forbid_unknown_fields=True):
    path: str
    name: str | None = None


class NewPlace(Struct, forbid_unknown_fields=True):
    path: str


class Repositories(Struct):
    """In the order of their names. `next` is the value of `after` for those behind
    them, or null."""

    repositories: list[RepositoryView]
    next: str | None


async def listed(call: Call) -> Answer:
    views = await call.control.repositories()
    found, behind = page(views, attrgetter("name"), call.query)
    steady = json_response(Repositories([*map(_without_age, found)], behind))
    return with_steady_tag(json_response(Repositories(found, behind)), steady)


async def add(call: Call) -> Answer:
    wanted = decode(call.request.body, NewRepository)
    _check_absolute(wanted.path)
    view = await call.control.add_repository(wanted.path, wanted.name)
    return json_response(view, status=201)


def _check_absolute(path: str) -> None:
    # The folder that a service was started in means nothing to its clients.
    if not os.path.isabs(path):
        raise InvalidInput("path", f"{path!r} is not absolute")


async def show(call: Call) -> Answer:
    view = await call.control.repository(call.parts[0])
    return with_steady_tag(json_response(view), json_response(_without_age(view)))


def _without_age(view: View) -> View:
    """The same without what is another one whenever it is asked for."""
    return structs.replace(view, status=structs.replace(view.status, age_ms=None))


async def relocate(call: Call) -> Answer:
    wanted = decode(call.request.body, NewPlace)
    _check_absolute(wanted.path)
    view = await call.control.relocate_repository(call.parts[0], wanted.path)
    return json_response(view)


async def remove(call: Call) -> Answer:
    view = await call.control.remove_repository(
        call.parts[0], cancel=call.query.flag("cancel")
    )
    return json_response(view)


async def enable(call: Call) -> Answer:
    decode(call.request.body, Nothing)
    return json_response(
        await call.control.enable_repository(call.parts[0], enabled=True)
    )


async def disable(call: Call) -> Answer:
    decode(call.request.body, Nothing)
    return json_response(
        await call.control.enable_repository(call.parts[0], enabled=False)
    )


ROUTES = (
    Route(
        "GET",
        "/v1/repositories",
        listed,
        PAGED,
        says="The repositories that are known.",
        gives=Repositories,
        tagged=True,
    ),
    Route(
        "POST",
        "/v1/repositories",
        add,
        says="Make a repository known.",
        takes=NewRepository,
        gives=RepositoryView,
        status=201,
    ),
    Route(
        "GET",
        "/v1/repositories/{name}",
        show,
        says="One repository, with its status.",
        gives=RepositoryDetails,
        tagged=True,
    ),
    Route(
        "DELETE",
        "/v1/repositories/{name}",
        remove,
        ("cancel",),
        says="Forget a repository that has no jobs, or end them first.",
        gives=RepositoryView,
        holds="cancel",
    ),
    Route(
        "POST",
        "/v1/repositories/{name}/relocate",
        relocate,
        says="Say where somebody moved a repository.",
        takes=NewPlace,
        gives=RepositoryView,
    ),
    Route(
        "POST",
        "/v1/repositories/{name}/enable",
        enable,
        says="Let jobs of a repository start.",
        takes=Nothing,
        gives=RepositoryView,
    ),
    Route(
        "POST",
        "/v1/repositories/{name}/disable",
        disable,
        says="Start nothing new in a repository.",
        takes=Nothing,
        gives=RepositoryView,
    ),
)
