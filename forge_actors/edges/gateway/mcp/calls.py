"""What the tools do: each asks the runtime one thing, and answers an object."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct, structs, to_builtins

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery, JobRequest
from forge_actors.domain.templates import FromTemplate
from forge_actors.edges.gateway.mcp.answers import fitting
from forge_actors.edges.gateway.mcp.rows import (
    job_row,
    job_rows,
    job_uri,
    next_step,
    pointers,
    repository_row,
)
from forge_actors.edges.gateway.query import check_places

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.control import Control
    from forge_actors.domain.controller_views import ControllerView
    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.schedule_views import ScheduleView
    from forge_actors.domain.templates import TemplateView
    from forge_actors.edges.gateway.mcp import arguments
    from forge_actors.edges.gateway.mcp.answers import Json
    from forge_actors.edges.gateway.mcp.caller import Caller

#: Tells the client how far it is: parts done, of how many, and in words.
Progress: TypeAlias = Callable[[float, float, str], Awaitable[None]]
#: Schedules that one answer lists, and times of one that are told.
MAX_SCHEDULES, MAX_TIMES = 100, 20
#: Repositories that one answer lists.
MAX_REPOSITORIES = 100


class Call(Struct, frozen=True):
    """One call of a tool: of whom, and how it says how far it is."""

    control: Control
    caller: Caller
    #: None: the client does not want to be told.
    progress: Progress | None = None


async def repositories(call: Call, wanted: arguments.Nothing) -> Json:
    found = await call.control.repositories()
    rows = fitting([repository_row(each) for each in found[:MAX_REPOSITORIES]])
    answer: Json = {"repositories": rows}
    if len(found) > len(rows):
        answer["not_shown"] = len(found) - len(rows)
    return answer


async def add_repository(call: Call, wanted: arguments.AddRepository) -> Json:
    if not os.path.isabs(wanted.path):
        raise InvalidInput("path", f"{wanted.path!r} is not absolute")
    added = await call.control.add_repository(wanted.path, wanted.name)
    return {"repository": repository_row(added)}


async def submit(call: Call, wanted: arguments.NewJob) -> Json:
    [answer] = await _submit(call, [wanted])
    return answer


async def batch(call: Call, wanted: arguments.Batch) -> Json:
    return {"jobs": await _submit(call, wanted.jobs)}


async def _submit(call: Call, jobs: Sequence[arguments.NewJob]) -> list[Json]:
    requests = [_request(job, call.caller) for job in jobs]
    check_places(requests)
    accepted = await call.control.submit(requests)
    return [
        {"id": each.id, "existing": each.existing, "uri": job_uri(each.id)}
        for each in accepted
    ]


def _request(job: arguments.NewJob, caller: Caller) -> JobRequest:
    fields: dict[str, Any] = {
        name: getattr(job, name) for name in job.__struct_fields__
    }
    argv, repo = fields.pop("command"), fields.pop("repo")
    cwd = None
    if repo is None:
        # Without a repository it runs where the agent was started, as if typed there.
        repo = cwd = caller.folder
    if repo is None:
        raise InvalidInput("repo", "is missing: give the name of a repository")
    return JobRequest(
        repo=repo,
        argv=argv,
        cwd=cwd,
        origin=caller.origin,
        parent=caller.parent,
        **fields,
    )


async def templates(call: Call, wanted: arguments.Templates) -> Json:
    views = await call.control.templates(wanted.repo)
    rows = fitting([_template_row(view) for view in views if not view.hidden])
    return {"templates": rows, "total": len(views)}


def _template_row(view: TemplateView) -> Json:
    row: Json = to_builtins(view)
    if row["job"].get("env"):
        # What a job is given may be secret; an agent is told no more than its names.
        row["job"]["env"] = dict.fromkeys(row["job"]["env"], "(not told)")
    return row


async def submit_template(call: Call, wanted: arguments.ByTemplate) -> Json:
    repo = wanted.repo or call.caller.folder
    if repo is None:
        raise InvalidInput("repo", "is missing: give the name of a repository")
    if "/" in repo and not os.path.isabs(repo):
        raise InvalidInput("repo", f"{repo!r} is relative")
    fields = ("name", "labels", "after", "request_id")
    given = {field: getattr(wanted, field) for field in fields}
    each = await call.control.submit_template(
        wanted.template,
        FromTemplate(
            repo=repo,
            values=wanted.values,
            job={field: value for field, value in given.items() if value},
            origin=call.caller.origin,
            parent=call.caller.parent,
        ),
    )
    return {"id": each.id, "existing": each.existing, "uri": job_uri(each.id)}


async def jobs(call: Call, wanted: arguments.ListJobs) -> Json:
    query = JobQuery(
        repo=wanted.repo,
        state=wanted.state,
        kind=wanted.kind,
        label=wanted.label,
        origin=[call.caller.origin] if wanted.mine else [],
        work=wanted.work,
        failed=wanted.failed,
        active=wanted.active,
        limit=wanted.limit + 1,
        before=wanted.before,
    )
    found = await call.control.jobs(query)
    rows = fitting([job_row(job) for job in found[: wanted.limit]])
    answer: Json = {"jobs": rows}
    if len(found) > len(rows):
        answer["next"] = found[len(rows) - 1].id
    return answer


async def show(call: Call, wanted: arguments.OneJob) -> Json:
    job = await whole_job(call.control, wanted.job)
    answer: Json = to_builtins(job)
    answer = {name: value for name, value in answer.items() if not _is_empty(value)}
    if (step := next_step(job)) is not None:
        answer["next_step"] = step
    return {**answer, "more": pointers(job)}


def _is_empty(value: object) -> bool:
    return value is None or value is False or value in ([], {})


async def whole_job(control: Control, selector: str) -> JobView:
    """A job with what it did in its worktree, if it has one."""
    job = await control.job(selector)
    if job.worktree is None:
        return job
    return structs.replace(job, result=await control.result(job.id))


async def why(call: Call, wanted: arguments.OneJob) -> Json:
    found: Json = to_builtins(await call.control.why(wanted.job))
    return found


async def cancel(call: Call, wanted: arguments.Cancel) -> Json:
    views = await call.control.cancel_all(wanted.jobs, grace=wanted.grace)
    return {"jobs": job_rows(views)}


async def retry(call: Call, wanted: arguments.Retry) -> Json:
    made = await call.control.retry(
        wanted.jobs, origin=call.caller.origin, resume=wanted.resume
    )
    return {"jobs": to_builtins(made)}


async def approve(call: Call, wanted: arguments.Approve) -> Json:
    control, agent = call.control, str(call.caller)
    match wanted.decision:
        case "approve":
            # Only people allow effects, and whoever calls here is an agent.
            job = await control.approve(wanted.job, how="mcp", caller=agent)
        case "deny":
            job = await control.deny(wanted.job, wanted.text, caller=agent)
        case "answer":
            if not wanted.text:
                raise InvalidInput("text", "is missing: it is the answer")
            job = await control.answer(wanted.job, wanted.text)
    return {"job": job_row(job)}


async def usage(call: Call, wanted: arguments.Usage) -> Json:
    report: Json = to_builtins(await call.control.usage(wanted.by, wanted.since))
    return report


async def schedules(call: Call, wanted: arguments.Schedules) -> Json:
    control, name = call.control, wanted.name
    if name is None:
        if wanted.action != "show":
            raise InvalidInput(
                "name", f"is missing: which schedule is to {wanted.action}"
            )
        views = await control.schedules()
        rows = fitting([_schedule_row(view) for view in views[:MAX_SCHEDULES]])
        return {"schedules": rows, "total": len(views)}
    if wanted.action == "run":
        return {
            "occurrence": to_builtins(
                await control.run_schedule(name, wanted.request_id)
            )
        }
    if wanted.action == "pause":
        await control.pause_schedule(name)
    elif wanted.action == "resume":
        await control.resume_schedule(name)
    told = await control.occurrences(name, MAX_TIMES)
    view: Json = to_builtins(await control.schedule(name))
    job = view["definition"]["job"]
    if job.get("env"):
        # What a job is given may be secret; an agent is told no more than its names.
        job["env"] = dict.fromkeys(job["env"], "(not told)")
    return {
        "schedule": view,
        "occurrences": fitting([to_builtins(one) for one in told]),
    }


def _schedule_row(view: ScheduleView) -> Json:
    fields = ("name", "repo", "state", "why", "trigger", "next", "runs", "failures")
    return {field: getattr(view, field) for field in fields}


async def controllers(call: Call, wanted: arguments.Controllers) -> Json:
    control, name = call.control, wanted.name
    if name is None:
        views = await control.list_controllers()
        rows = fitting([_controller_row(view) for view in views[:MAX_SCHEDULES]])
        return {"controllers": rows, "total": len(views)}
    wakes = await control.controller_wakes(name, MAX_TIMES)
    return {
        "controller": to_builtins(await control.controller(name)),
        "wakes": fitting([to_builtins(one) for one in wakes]),
    }


def _controller_row(view: ControllerView) -> Json:
    fields = ("name", "repo", "state", "why", "job", "rounds", "next")
    return {field: getattr(view, field) for field in fields}


async def end_turn(call: Call, wanted: arguments.EndTurn) -> Json:
    view = await call.control.tell_controller(
        wanted.controller,
        wanted.disposition,
        note=wanted.note,
        state=wanted.state,
        caller=call.caller.job,
    )
    return {"controller": _controller_row(view)}
