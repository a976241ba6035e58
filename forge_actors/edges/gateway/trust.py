"""The routes of trust, and of templates."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.requests import Accepted
from forge_actors.domain.templates import FromTemplate, TemplateView
from forge_actors.domain.trust import TrustedRun, TrustRequest, TrustView
from forge_actors.domain.workflow_views import WorkflowView
from forge_actors.edges.gateway.callers import caller, origin_of
from forge_actors.edges.gateway.messages import json_response
from forge_actors.edges.gateway.paging import PAGED, page
from forge_actors.edges.gateway.parameters import text
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call

_REPO = text("repo", "Only those of this repository, and of the home.")


class Templates(Struct):
    """Those of the home first, then those of each repository. `next` is the value of
    `after` for those behind them, or null."""

    templates: list[TemplateView]
    next: str | None


async def show(call: Call) -> Answer:
    return json_response(await call.control.trust(call.parts[0]))


async def trust(call: Call) -> Answer:
    wanted = decode(call.request.body, TrustRequest)
    _check_person(call)
    return json_response(await call.control.trust_repository(call.parts[0], wanted))


async def distrust(call: Call) -> Answer:
    _check_person(call)
    return json_response(await call.control.distrust_repository(call.parts[0]))


def _check_person(call: Call) -> None:
    """A job may ask what there is, and use what a person has trusted.

    Raises:
        Refused: a job asks for more.
    """
    job = caller(call.request)
    if job is not None:
        raise Refused(
            f"job {job} cannot trust what a repository brings along; a person can"
        )


async def run_workflow(call: Call) -> Answer:
    wanted = decode(call.request.body, TrustedRun)
    repo, name = call.parts
    view = await call.control.run_trusted_workflow(
        repo, name, wanted, origin=origin_of(call.request, "cli")
    )
    return json_response(view, status=201)


async def listed(call: Call) -> Answer:
    views = await call.control.templates(call.query.one("repo"))
    found, behind = page(views, _place, call.query)
    return json_response(Templates(found, behind))


def _place(view: TemplateView) -> str:
    return f"{view.repo or ''}/{view.name}"


async def one(call: Call) -> Answer:
    repo = call.query.one("repo")
    return json_response(await call.control.template(call.parts[0], repo))


async def submit(call: Call) -> Answer:
    wanted = decode(call.request.body, FromTemplate)
    if "/" in wanted.repo and not os.path.isabs(wanted.repo):
        raise InvalidInput("repo", f"{wanted.repo!r} is relative")
    asks = caller(call.request)
    if wanted.parent is None:
        origin = origin_of(call.request, wanted.origin)
        wanted = structs.replace(wanted, origin=origin)
    elif asks is not None and wanted.parent.job != asks:
        raise InvalidInput("parent", f"is not the job that asks, {asks}")
    accepted = await call.control.submit_template(call.parts[0], wanted)
    return json_response(accepted, status=201)


ROUTES = (
    Route(
        "GET",
        "/v1/repositories/{name}/trust",
        show,
        says="What a repository brings along, and what of it is trusted.",
        gives=TrustView,
    ),
    Route(
        "POST",
        "/v1/repositories/{name}/trust",
        trust,
        says="Trust what a repository brings along, as it was shown.",
        takes=TrustRequest,
        gives=TrustView,
    ),
    Route(
        "DELETE",
        "/v1/repositories/{name}/trust",
        distrust,
        says="Trust a repository no more; its templates and schedules go.",
        gives=TrustView,
    ),
    Route(
        "POST",
        "/v1/repositories/{name}/workflows/{workflow}/run",
        run_workflow,
        says="Begin a workflow that a repository brings along, as it is trusted.",
        takes=TrustedRun,
        gives=WorkflowView,
        status=201,
    ),
    Route(
        "GET",
        "/v1/templates",
        listed,
        (_REPO, *PAGED),
        says="The templates of the home and of trusted repositories.",
        gives=Templates,
    ),
    Route(
        "GET",
        "/v1/templates/{name}",
        one,
        (_REPO,),
        says="One template.",
        gives=TemplateView,
    ),
    Route(
        "POST",
        "/v1/templates/{name}/submit",
        submit,
        says="Queue the job that a template makes of values.",
        takes=FromTemplate,
        gives=Accepted,
        status=201,
    ),
)
