"""Traces: what a collector is told of jobs, and what jobs are told of their trace."""

from __future__ import annotations

import subprocess
import sys
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.requests import JobRequest
from forge_actors.edges import spans
from forge_actors.runtime import tracing
from forge_actors.runtime.settings import settings_from
from forge_actors.runtime.telemetry_settings import TelemetrySettings
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
ECHO = ("sh", "-c", "printf %s $TRACEPARENT")


@asynccontextmanager
async def traced(
    folder: Path, monkeypatch: pytest.MonkeyPatch, exporter: SpanExporter
) -> AsyncGenerator[Case, None]:
    """A runtime that gives its spans to this exporter; they are there at its end."""
    monkeypatch.setattr(tracing, "exporter_named", lambda name: exporter)
    async with controlled(folder, telemetry={"traces": "memory"}) as case:
        yield case


async def submit(case: Case, *argv: str, **options: Any) -> str:
    request = JobRequest("app", list(argv), read_only=True, **options)
    [entry] = await case.control.submit([request])
    return entry.id


async def output(case: Case, job: str) -> str:
    await case.control.wait([job])
    chunk = await case.control.read_log(job, "stdout", 0, limit=1000)
    return chunk.data.decode()


def by_name(exporter: InMemorySpanExporter, job: str) -> dict[str, ReadableSpan]:
    """The spans of the only attempt of a job."""
    found = exporter.get_finished_spans()
    [whole] = [s for s in found if (s.attributes or {}).get("forge.job.id") == job]
    assert whole.context is not None
    within = [
        s for s in found if s.parent and s.parent.span_id == whole.context.span_id
    ]
    return {whole.name: whole, **{s.name: s for s in within}}


async def test_an_attempt_is_a_span_of_its_submitter_and_its_job_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    async with traced(tmp_path, monkeypatch, exporter) as case:
        env = {"TRACEPARENT": PARENT}
        good = await submit(case, *ECHO, kind="check", env=env)
        told = await output(case, good)
        bad = await submit(case, "false")
        await case.control.wait([bad])
    found = by_name(exporter, good)
    assert set(found) == {"job check", "queue", "start", "run"}
    whole = found["job check"]
    assert whole.context is not None
    assert whole.parent is not None
    assert f"{whole.context.trace_id:032x}" == TRACE
    assert f"{whole.parent.span_id:016x}" == SPAN
    assert told == f"00-{TRACE}-{whole.context.span_id:016x}-01"
    assert (whole.attributes or {})["forge.outcome"] == "succeeded"
    assert (whole.attributes or {})["forge.repository"] == "app"
    assert whole.status.status_code is StatusCode.UNSET
    moments = [whole.start_time]
    for name in ("queue", "start", "run"):
        moments += [found[name].start_time, found[name].end_time]
    moments.append(whole.end_time)
    assert moments == sorted(moments, key=lambda at: at or 0)
    failed = by_name(exporter, bad)["job repository-command"]
    assert failed.parent is None
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "EXIT_NONZERO"
    assert failed.resource.attributes["service.name"] == "forge-actors"


async def test_what_a_submitter_does_not_keep_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter = InMemorySpanExporter()
    async with traced(tmp_path, monkeypatch, exporter) as case:
        job = await submit(case, *ECHO, env={"TRACEPARENT": PARENT[:-1] + "0"})
        told = await output(case, job)
    assert told.startswith(f"00-{TRACE}-")
    assert told.endswith("-00")
    assert exporter.get_finished_spans() == ()


async def test_without_traces_a_job_has_the_context_of_its_submitter(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        job = await submit(case, *ECHO, env={"TRACEPARENT": PARENT})
        assert await output(case, job) == PARENT
        assert await output(case, await submit(case, *ECHO)) == ""


async def test_the_same_request_in_another_trace_is_the_same(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        ids = [
            await submit(case, "true", request_id="once", env=env)
            for env in ({"TRACEPARENT": PARENT}, {"TRACEPARENT": PARENT[:-1] + "0"}, {})
        ]
        assert len(set(ids)) == 1
        with pytest.raises(Refused):
            await submit(case, "true", request_id="once", env={"OTHER": "1"})


class Failing(SpanExporter):
    def __init__(self) -> None:
        self.calls = 0
        self.closed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.calls += 1
        if self.calls % 2:
            raise OSError("nobody listens")
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        self.closed = True
        raise OSError("nobody listens")


async def test_an_exporter_that_fails_harms_no_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    exporter = Failing()
    monkeypatch.setattr(tracing, "READ_TOGETHER", 2)
    async with traced(tmp_path, monkeypatch, exporter) as case:
        jobs = [await submit(case, "true") for _ in range(3)]
        views = await case.control.wait(jobs)
    assert {view.state for view in views} == {"succeeded"}
    assert exporter.calls >= 2
    assert exporter.closed
    assert caplog.text.count("traces are lost: nobody listens") == 1


@pytest.mark.parametrize(
    ("traces", "environ", "wanted"),
    [
        ("off", {}, None),
        ("console", {}, "console"),
        ("console", {"OTEL_SDK_DISABLED": "true"}, None),
        ("off", {"OTEL_TRACES_EXPORTER": "otlp,console"}, "otlp"),
        ("off", {"OTEL_TRACES_EXPORTER": "none"}, None),
        ("off", {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://localhost:4318"}, "otlp"),
        ("off", {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://x"}, "otlp"),
        (
            "off",
            {"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://x"},
            None,
        ),
    ],
)
def test_the_settings_and_the_variables_say_who_is_told(
    traces: str, environ: dict[str, str], wanted: str | None
) -> None:
    assert TelemetrySettings(traces).exporter(environ) == wanted


def test_a_name_that_can_be_none_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"telemetry\.traces"):
        settings_from({"telemetry": {"traces": "a b"}})


def test_an_exporter_that_is_not_there_is_told_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert spans.exporter_named("console") is not None
    assert spans.exporter_named("nobody") is None
    assert "there is no exporter nobody" in caplog.text
    monkeypatch.setattr(spans, "find_spec", lambda name: None)
    assert spans.exporter_named("console") is None
    assert "forge-actors[otel]" in caplog.text


def test_one_that_is_there_and_cannot_be_loaded_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broken:
        name = "broken"

        def load(self) -> Any:
            raise ImportError("half of it is missing")

    monkeypatch.setattr(spans, "entry_points", lambda group: [Broken()])
    with pytest.raises(Refused, match="half of it is missing"):
        spans.exporter_named("broken")


def test_nothing_of_it_is_loaded_where_nobody_wants_traces() -> None:
    script = (
        "import sys, forge_actors.runtime.service, forge_actors.runtime.parts\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry.sdk')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
