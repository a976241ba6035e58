"""A job is a part of the trace of whoever submits it, also through another job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PARENT = f"00-{TRACE}-{SPAN}-01"
ECHO = "printf %s $TRACEPARENT"


def test_a_job_has_the_context_of_the_shell_it_came_from(
    unwatched: LiveService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEPARENT", PARENT)
    job = unwatched.bash("app", ECHO)
    own = unwatched.bash("app", ECHO, "--env", "TRACEPARENT=mine")
    [batched] = unwatched.batch([{"repo": "app", "argv": ["bash", "-c", ECHO]}])
    monkeypatch.setenv("TRACEPARENT", "00-no\r\nx: y")
    none = unwatched.bash("app", ECHO)
    unwatched.wait(job, own, batched, none)
    logs = [unwatched.log(each) for each in (job, own, batched, none)]
    assert logs == [PARENT.encode(), b"mine", PARENT.encode(), b""]


def test_spans_of_jobs_within_jobs_are_of_one_trace(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the exporter of the SDK itself, which writes to the output of the service."""
    service = make_service('[telemetry]\ntraces = "console"\n')
    service.start()
    service.add("app")
    monkeypatch.setenv("TRACEPARENT", PARENT)
    script = f"{ECHO}; {PROGRAM} submit --read-only -- true >&2"
    outer = service.bash("app", script, "--read-only")
    service.wait(outer)
    inner = service.log(outer, "--stderr").decode().strip()
    service.wait(inner)
    service.cli("stop", status=0)
    spans = spans_in((service.home / "service.log").read_text())
    by_job = {s["attributes"]["forge.job.id"]: s for s in spans if s["attributes"]}
    assert set(by_job) == {outer, inner}
    assert {s["context"]["trace_id"] for s in spans} == {f"0x{TRACE}"}
    own = by_job[outer]["context"]["span_id"]
    assert by_job[outer]["parent_id"] == f"0x{SPAN}"
    assert by_job[inner]["parent_id"] == own
    assert service.home.exists()


def spans_in(text: str) -> list[dict[str, dict[str, str]]]:
    """The objects that are on more than one line."""
    found = []
    decoder = json.JSONDecoder()
    at = text.find("{\n")
    while at >= 0:
        span, at = decoder.raw_decode(text, at)
        found.append(span)
        at = text.find("{\n", at)
    return found
