"""The routes of what comes over time: the output of jobs, and events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.events import EventView
from forge_actors.edges.gateway import events, logs
from forge_actors.edges.gateway.messages import BYTES, JSON_LINES
from forge_actors.edges.gateway.parameters import texts
from forge_actors.edges.gateway.query import decode
from forge_actors.edges.gateway.route import Route

if TYPE_CHECKING:
    from forge_actors.edges.gateway.call import Answer, Call


class SeveralJobs(Struct, forbid_unknown_fields=True):
    jobs: list[str]


async def read_log(call: Call) -> Answer:
    selector, stream = call.parts
    return await logs.log_stream(call.control, selector, stream, call.query)


async def read_logs(call: Call) -> Answer:
    jobs = decode(call.request.body, SeveralJobs).jobs
    return await logs.log_streams(call.control, jobs, call.query)


_KIND = texts("kind", "Only events of these kinds.")

ROUTES = (
    Route(
        "GET",
        "/v1/jobs/{job}/logs/{stream}",
        read_log,
        logs.PARAMETERS,
        says="The output of a job: `stdout`, `stderr` or `both`.",
        media=BYTES,
        holds="follow",
    ),
    Route(
        "POST",
        "/v1/logs",
        read_logs,
        logs.MANY_PARAMETERS,
        says="The output of several jobs, in frames.",
        takes=SeveralJobs,
        media=BYTES,
        holds="follow",
    ),
    Route(
        "GET",
        "/v1/events",
        events.read,
        tuple(_KIND if name == "kind" else name for name in events.PARAMETERS),
        says="What happened, the oldest first, one event a line; or as a stream of"
        " server-sent events, asked for by `Accept` or `format`.",
        headers=(events.LAST_ID,),
        gives=EventView,
        media=JSON_LINES,
        holds="follow",
    ),
)
