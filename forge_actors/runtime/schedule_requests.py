"""From what people write of a schedule to what is kept of it, and back."""

from __future__ import annotations

import os
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import structs

from forge_actors.domain.causes import (
    LEAST_PACE,
    LONGEST_PACE,
    USUAL_COOLDOWN,
    Issues,
    parse_cause,
)
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobs import READ_ONLY_KINDS
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.schedule_wakes import cautious
from forge_actors.domain.schedules import Definition, Policies, check_name
from forge_actors.domain.triggers import (
    LAST_MOMENT,
    Cron,
    Every,
    Manual,
    On,
    Once,
    checked_zone,
    cron,
    every,
    of_checkout,
    of_issues,
)

if TYPE_CHECKING:
    from forge_actors.domain.schedule_views import ScheduleRequest
    from forge_actors.domain.schedules import Overlap
    from forge_actors.domain.triggers import Trigger

#: The fields of a request that are durations, and those that policies have as they are.
_SPANS = ("catch_up", "jitter", "cooldown", "daily_budget", "backoff", "max_backoff")
_PLAIN = (
    *("misfire", "catch_up_most", "overlap", "max_failures", "max_runs"),
    *("when_clean", "not_while", "shadow"),
)
#: What a schedule says of each of its jobs itself.
_OWN = ("repo", "request_id", "origin", "parent", "after", "unique", "work", "inputs")


def definition_of(
    request: ScheduleRequest, repo: str, *, source: str | None = None
) -> Definition:
    """What a request says, checked; `repo` is the id of its repository.

    Raises:
        InvalidInput: naming the field that is wrong.
    """
    check_name(request.name)
    trigger = trigger_of(request)
    policies = _policies(request, "queue" if of_issues(trigger) else "skip")
    wakes = request.wake is not None
    if wakes:
        policies = cautious(policies)
    job = _job(request)
    writes = not (job.read_only or job.kind in READ_ONLY_KINDS)
    if request.cooldown is None and writes and of_checkout(trigger) and not wakes:
        policies = structs.replace(policies, cooldown=USUAL_COOLDOWN)
    return Definition(
        name=request.name,
        repo=repo,
        trigger=trigger,
        request=job,
        policies=policies,
        source=source,
        transient=request.transient,
        wake=request.wake,
    )


def trigger_of(request: ScheduleRequest) -> Trigger:
    """When it is due.

    Raises:
        InvalidInput: it does not say, or says it twice.
    """
    given = [
        name
        for name in ("on", "every", "cron", "at", "manual")
        if getattr(request, name) not in (None, False)
    ]
    least = 0.0
    if request.on is not None and request.every is not None:
        given.remove("every")
        least = every(parse_duration(request.every, field="every")).seconds
    if len(given) != 1:
        raise InvalidInput(
            given[1] if given else "every",
            "one of every, cron, at, on and manual says when it runs"
            + (f", not {' and '.join(given)}" if given else ""),
        )
    if request.timezone is not None:
        checked_zone(request.timezone)
    if request.on is not None:
        cause = parse_cause(request.on)
        if isinstance(cause, Issues):
            # Each issue has its job: what is rare is the question.
            return On(_paced(cause, least))
        return On(cause, least)
    if request.every is not None:
        return every(parse_duration(request.every, field="every"))
    if request.cron is not None:
        return cron(request.cron, request.timezone or local_zone())
    if request.at is not None:
        return Once(moment_of(request.at, request.timezone, field="at"))
    return Manual()


def _paced(cause: Issues, every: float) -> Issues:
    if not every:
        return cause
    if not LEAST_PACE <= every <= LONGEST_PACE:
        raise InvalidInput("every", "issues are asked for each 30s to each 24h")
    return structs.replace(cause, every=every)


def moment_of(text: str, timezone: str | None, *, field: str) -> float:
    """Seconds since 1970 of a time such as `2026-01-02T03:04`, in a time zone.

    Raises:
        InvalidInput: it is none.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            field, f"{text!r} is no time such as 2026-01-02T03:04 or 2026-01-02"
        ) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=checked_zone(timezone or local_zone()))
    seconds = moment.timestamp()
    if not 0 <= seconds < LAST_MOMENT:
        raise InvalidInput(field, f"{text!r} is not between 1970 and 9998")
    return seconds


def local_zone() -> str:
    """The IANA name of the time zone of this machine; UTC if it does not say."""
    named = os.environ.get("TZ", "").removeprefix(":")
    with suppress(OSError):
        named = named or os.readlink("/etc/localtime").partition("zoneinfo/")[2]
    with suppress(InvalidInput):
        checked_zone(named)
        return named
    return "UTC"


def _job(request: ScheduleRequest) -> JobRequest:
    for name in _OWN:
        if name in request.job:
            raise InvalidInput(f"job.{name}", "cannot be given to a job of a schedule")
    if request.wake is not None:
        check_name(request.wake, of="controller", field="wake")
        if request.job:
            raise InvalidInput("wake", "a schedule wakes a controller, or has a job")
        return JobRequest(repo=request.repo, argv=[])
    wanted = {"argv": [], **request.job, "repo": request.repo}
    job = convert(wanted, JobRequest, where="job")
    if not job.argv and job.agent is None:
        raise InvalidInput("job.argv", "names no program to run")
    return job


def _policies(request: ScheduleRequest, overlap: Overlap) -> Policies:
    values: dict[str, Any] = {name: getattr(request, name) for name in _PLAIN}
    values["overlap"] = request.overlap or overlap
    for name in _SPANS:
        value = getattr(request, name)
        if value is not None:
            values[name] = parse_duration(value, field=name)
    if request.until is not None:
        values["until"] = moment_of(request.until, request.timezone, field="until")
    policies = convert(values, Policies)
    policies.check()
    return policies


def request_from(definition: Definition, repo: str) -> dict[str, Any]:
    """What a definition was made of, with the name of its repository, or the path of a
    checkout besides the one that is registered."""
    if "/" in definition.request.repo:
        repo = definition.request.repo
    job: dict[str, Any] = msgspec.to_builtins(definition.request)
    job.pop("repo", None)
    wanted: dict[str, Any] = {"name": definition.name, "repo": repo}
    match definition.trigger:
        case Every(seconds):
            wanted["every"] = seconds
        case Cron(expression, timezone):
            wanted |= {"cron": expression, "timezone": timezone}
        case On(cause, least):
            wanted["on"] = str(cause)
            if isinstance(cause, Issues):
                wanted["every"] = cause.every
            elif least:
                wanted["every"] = least
        case Once(moment):
            wanted["at"] = datetime.fromtimestamp(moment).astimezone().isoformat()
        case Manual():
            wanted["manual"] = True
    usual = msgspec.to_builtins(Policies())
    policies: dict[str, Any] = msgspec.to_builtins(definition.policies)
    policies = {n: value for n, value in policies.items() if value != usual.get(n)}
    if of_checkout(definition.trigger):  # none is not the usual one there
        policies["cooldown"] = definition.policies.cooldown
    if (until := policies.pop("until", None)) is not None:
        wanted["until"] = datetime.fromtimestamp(until).astimezone().isoformat()
    if definition.transient:
        wanted["transient"] = True
    if definition.wake is not None:
        wanted["wake"], job = definition.wake, {}
    return {**wanted, **policies, "job": job}


def with_repository(definition: Definition, repo: str, root: str) -> Definition:
    """The same, its jobs submitted to the repository with an id, or to the checkout at
    a path. A folder in it is named from its root, so that it may be moved."""
    cwd = definition.request.cwd
    if cwd is not None and f"{cwd}/".startswith(f"{root}/"):
        cwd = os.path.relpath(cwd, root)
    request = structs.replace(
        definition.request, repo=repo, cwd=None if cwd == os.curdir else cwd
    )
    return structs.replace(definition, request=request)
