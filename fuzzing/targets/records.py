"""What is stored: rows of the store, files of a home, records of EPIC runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec
from msgspec import structs

from forge_actors.domain import (
    controller_records,
    damage,
    schedule_records,
    sightings,
    workflow_records,
)
from forge_actors.domain.capacity import tokens_for
from forge_actors.domain.causes import parse_cause
from forge_actors.domain.controllers import Controller, Limits
from forge_actors.domain.epic import records, runs
from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.errors import ReleaseDamaged
from forge_actors.domain.events import KINDS, Event
from forge_actors.domain.history import BrokenHistory, History
from forge_actors.domain.jobs import AgentSpec, JobSpec
from forge_actors.domain.launch import Receipt
from forge_actors.domain.outputs import ToldOutputs, shown_outputs
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import Definition, Progress, Schedule
from forge_actors.domain.triggers import Cron, Every, On
from forge_actors.domain.workflow_definitions import (
    Definition as WorkflowDefinition,
)
from forge_actors.domain.workflow_definitions import StepDefinition
from forge_actors.domain.workflow_steps import Step, Workflow
from forge_actors.edges.sqlite import rows
from forge_actors.runtime.release import RELEASE_FILE, read_active
from forge_actors.runtime.status_file import read_json
from forge_actors.testing.epic.records import (
    made_assignment,
    made_binding,
    made_claim,
    made_scheduler,
    made_state,
)
from fuzzing.place import file_of, folder
from fuzzing.target import Broken, Refusing, Target, check_message, same

if TYPE_CHECKING:
    from forge_actors.domain.epic.records import Record

S = TypeVar(
    "S",
    sightings.EndsSeen,
    sightings.LookSeen,
    sightings.RefsSeen,
    sightings.CommitSeen,
)
_KINDS: tuple[type[Record], ...] = (
    records.Binding,
    records.Claim,
    records.EngineState,
    records.Assignment,
    records.Scheduler,
    records.StopRequest,
)
_state = Refusing(StateError)


def epic_records(data: bytes) -> None:
    for kind in _KINDS:
        record = _state(records.decode, kind, data)
        if record is not None:
            written = records.encode(record)
            same(records.decode(kind, written, 1 << 30), record, "written and read")
            same(
                records.encode(records.decode(kind, written, 1 << 30)), written, "again"
            )
    told = records.detail(data.decode("utf-8", "surrogateescape"))
    if len(told) > records.MAX_DETAIL:
        raise Broken("a detail has no bounds")
    if told:
        check_message(told)


def schedules(data: bytes) -> None:
    schedule, problem = schedule_records.loaded("s1", "nightly", data)
    if problem is None:
        again, other = schedule_records.loaded(
            "s1", "nightly", schedule_records.encoded(schedule)
        )
        same((again, other), (schedule, None), "stored again")
    else:
        same(schedule.state, "quarantined", "one that cannot be read")


def controllers(data: bytes) -> None:
    controller, problem = controller_records.loaded("c1", "name", data)
    if problem is None:
        body = controller_records.saved(controller).body
        same(controller_records.loaded("c1", "name", body)[0], controller, "again")
    else:
        same(controller.state, "quarantined", "one that cannot be read")


_workflow = Refusing(workflow_records.UnreadableWorkflow)


def workflows(data: bytes) -> None:
    first, _, rest = data.partition(b"\n")
    definition, _, step = rest.partition(b"\n")
    found = _workflow(workflow_records.loaded, (definition, first), [step])
    if found is not None:
        workflow, made, steps = found
        bodies = [msgspec.json.encode(part) for part in (made, workflow, *steps)]
        again = workflow_records.loaded((bodies[0], bodies[1]), bodies[2:])
        same(again, found, "stored again")


def epic_runs(data: bytes) -> None:
    run = Refusing(runs.UnreadableEpic)(runs.loaded, data)
    if run is not None:
        same(runs.loaded(msgspec.json.encode(run)), run, "stored again")


_row = Refusing(msgspec.DecodeError, RecursionError)


def jobs(data: bytes) -> None:
    """The texts in the row of a job, a line each: what is to be done, its claims, after
    what, and its receipt."""
    texts = [line.decode("utf-8", "replace") for line in data.split(b"\n")]
    spec, claims, after, told = (*texts, "", "", "", "")[:4]
    row = (
        *("a1", "agent-run", "queued", 2, None, claims, after, "never"),
        *(0, 3, None, 5.0, None, None, None, spec, 0),
    )
    job = _row(rows.job_from, "r1", row)
    details = _row(rows.spec_from, (spec,))
    receipt = _row(msgspec.json.decode, told.encode(), type=Receipt)
    if details is not None:
        written = msgspec.json.encode(details).decode()
        same(rows.spec_from((written,)), details, "stored again")
        found = shown_outputs(details, receipt, ended=True)
        if found is not None and found.problem is not None:
            check_message(found.problem)
    if job is not None:
        again = msgspec.json.encode(job.claims).decode()
        same(rows.claims_from(again), job.claims, "claims stored again")
        rows.claims_from.cache_clear()


def small_files(data: bytes) -> None:
    """Files that are replaced as a whole, and texts that are kept with others."""
    file_of(RELEASE_FILE, data)
    Refusing(ReleaseDamaged)(read_active, folder())
    read_json(file_of("exit.json", data))
    marker = damage.read_marker(data)
    if (
        marker == marker and marker.at == marker.at
    ):  # a number that is none is not equal
        same(damage.read_marker(damage.write_marker(marker)), marker, "written again")
    text = data.decode("utf-8", "replace")
    _seen(text, sightings.EndsSeen)
    _seen(text, sightings.LookSeen)
    _seen(text, sightings.RefsSeen)
    _seen(text, sightings.CommitSeen)


def _seen(text: str, kind: type[S]) -> None:
    seen = sightings.read(text, kind)
    if seen is not None:
        same(sightings.read(sightings.written(seen), kind), seen, "seen again")


_history = Refusing(BrokenHistory)


def histories(data: bytes) -> None:
    """Events as they are stored, a line each."""
    past = History()
    for number, line in enumerate(data.split(b"\n")[:50], start=1):
        try:
            event = msgspec.json.decode(line, type=Event)
        except (msgspec.DecodeError, RecursionError):
            continue
        known = event.kind == "job_dispatched" and event.job in past.jobs
        _history(past.apply, structs.replace(event, seq=number))
        if known and past.seq == number:
            past.faults(event.job or "")


_BINDING = made_binding(12)
_CRON = Cron("0 3 * * *", "Europe/Prague")


def _schedule(trigger: Cron | Every | On) -> bytes:
    job = JobRequest("r1", ["true"])
    definition = Definition("nightly", "r1", trigger, job)
    return schedule_records.encoded(Schedule("s1", 1, definition, Progress(5.0)))


_CLAIMS = [("write", "path", "a", "/x")]
_SPEC = JobSpec(
    ("make", {"b64": "/w=="}),
    "/x",
    env={"A": "b"},
    outputs=("A",),
    agent=AgentSpec("claude", "p"),
)
_JOB = b"\n".join(
    msgspec.json.encode(part)
    for part in (
        _SPEC,
        _CLAIMS,
        ["a0"],
        Receipt("a1", 1, 2, "exit", 3.0, outputs=ToldOutputs("A=1\nB=2\n")),
    )
)
_DEEP = b'{"x":' + b"[" * 2000
_LIMITS = Limits()
_CONTROLLER = controller_records.saved(
    Controller("c1", "name", "r1", "claude", {}, "prompt", _LIMITS, None, 5.0)
).body
_STEP = StepDefinition("build", "r1", JobRequest("r1", ["true"]))
_WORKFLOW = b"\n".join(
    msgspec.json.encode(part)
    for part in (
        Workflow("w1", "deploy", "portfolio", "0" * 64, 5.0),
        WorkflowDefinition("deploy", "portfolio", (_STEP,)),
        Step("build", 1),
    )
)
_TOLD: tuple[tuple[str, str | None, dict[str, object]], ...] = (
    ("repository_added", None, {"name": "demo", "path": "/demo"}),
    (
        "job_queued",
        "a1",
        {"kind": "agent-run", "priority": "P2", "origin": "cli", "claims": _CLAIMS},
    ),
    (
        "job_dispatched",
        "a1",
        {
            "attempt": 1,
            "fence": 1,
            "tokens": tokens_for("agent-run", None),
            "claims": _CLAIMS,
            "reason": "next",
        },
    ),
    ("job_running", "a1", {"reason": "started"}),
    ("job_edited", "a1", {"changed": {"priority": "P1", "labels": ["x"]}}),
    ("job_succeeded", "a1", {"reason": "exit"}),
)
_EVENTS = b"\n".join(
    msgspec.json.encode(Event(kind, 5.0, "r1", job, data)) for kind, job, data in _TOLD
)
_RUN = msgspec.json.encode(
    runs.EpicRun("e1", runs.EpicRequest("https://x/issues/7", "r1"), "r1", "cli", 5.0)
)
_EPIC_WORDS = (
    *(b'"schema":1', b'"run_key":', b'"phase":"', b'"claim_id":"c-', b'"closed":'),
    *(b"sha256:", b"2026-01-02T03:04:05Z", b"null", b"true", b"NaN", b'"detail":"'),
)

TARGETS = (
    Target(
        "epic-records",
        "a record of an EPIC is exactly one, and is read as it is written",
        epic_records,
        (
            records.encode(_BINDING),
            records.encode(made_claim(12)),
            records.encode(made_state(12)),
            records.encode(made_assignment(12)),
            records.encode(made_scheduler()),
            records.encode(records.StopRequest(mode="now")),
            *(_DEEP, b'{"schema":1,"mode":"now","mode":"drain"}', b'{"a\\u001b":NaN}'),
            b'{"schema":1,"mode":"now","\\u001b[2J":1}',
        ),
        _EPIC_WORDS,
    ),
    Target(
        "stored-jobs",
        "a job is stored as it is, or what cannot be read of it is told",
        jobs,
        (_JOB, _DEEP + b"\n[]", b"{}\n[[]]\n" + _DEEP),
        (b'"argv":[', b'"budgets":{', b'"agent":{', b'"outputs":[', b"\n"),
    ),
    Target(
        "stored-schedules",
        "a schedule is stored as it is, or set aside with the reason",
        schedules,
        (
            _schedule(_CRON),
            _schedule(Every(60.0)),
            _schedule(On(parse_cause("ended:build"), 5.0)),
            *(_DEEP, b"{}", b"[]", b'{"progress":{"pending":[{"moment":null}]}}'),
        ),
        (b'"trigger":', b'"kind":"', b'"pending":[', b'"moment":null', b'"timezone":"'),
    ),
    Target(
        "stored-controllers",
        "a controller is stored as it is, or set aside with the reason",
        controllers,
        (_CONTROLLER, _DEEP, b"{}"),
        (b'"state":"', b'"limits":', b'"agent":"'),
    ),
    Target(
        "stored-workflows",
        "a workflow is stored as it is, or refused with the reason",
        workflows,
        (_WORKFLOW, _DEEP, b"{}\n" + _DEEP),
        (b'"steps":[', b'"state":"', b"\n", b'"request":'),
    ),
    Target(
        "stored-epics",
        "a run of an EPIC is stored as it is, or refused with the reason",
        epic_runs,
        (_DEEP, _RUN, b'{"id":"e1","epic":"u","state":"running"}'),
        (b'"state":"', b'"view":', b'"issues":['),
    ),
    Target(
        "histories",
        "an event that cannot be the next one is refused, and says what it lacks",
        histories,
        (
            _EVENTS,
            b'{"kind":"limits_changed","at":1,"data":{"limits":{"workers":"x"}}}',
            b'{"kind":"policy_changed","at":1,"data":{"mode":[]}}\n'
            b'{"kind":"job_x","at":1,"data":{"x":' + b"[" * 2000,
        ),
        (
            *(b'"kind":"', b'"data":{', b'"job":"a1"', b'"repo":"r1"', b'"claims":['),
            *(kind.encode() for kind in sorted(KINDS)),
        ),
    ),
    Target(
        "small-files",
        "a file of a home that is damaged is told of, and harms nothing",
        small_files,
        (
            damage.write_marker(damage.SetAside("torn", "aside/1", 5.0)),
            sightings.written(sightings.EndsSeen(5, {"a": "b"})).encode(),
            sightings.written(sightings.LookSeen(1, clean=True)).encode(),
            sightings.written(sightings.RefsSeen({"main": "a" * 40})).encode(),
            *(_DEEP, b"[" * 3000, b'{"reason":"r","place":"p","at":1e999}', b"\xff"),
        ),
        (b'"at":', b'"after":', b'"heads":', b"Infinity", b"1e400"),
    ),
)
