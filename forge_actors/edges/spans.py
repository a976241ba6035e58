"""Spans on their way out, by the SDK of OpenTelemetry.

It is loaded by whoever makes a `SpanWriter`, and by nobody else. What it is given waits
here until `export` takes it: there is no thread of its own, and no timer.
"""

from __future__ import annotations

import logging
import os
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter

    from forge_actors.domain.spans import Span

log = logging.getLogger(__name__)

INSTALL = "pip install 'forge-actors[otel]'"
#: The exporters that are installed are found under this name, by one of their own.
GROUP = "opentelemetry_traces_exporter"
#: What people call an exporter that is installed by another name.
_ALIASES = {"otlp": ("otlp", "otlp_proto_http", "otlp_proto_grpc")}
_SERVICE = "forge-actors"


def exporter_named(name: str) -> SpanExporter | None:
    """The exporter of this name; None, and a word in the log, if there is none.

    Raises:
        Refused: it is there and cannot be loaded.
    """
    if find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None:
        log.warning("no traces are sent, as that needs the extra otel: %s", INSTALL)
        return None
    there = {point.name: point for point in entry_points(group=GROUP)}
    for alias in _ALIASES.get(name, (name,)):
        if alias in there:
            try:
                exporter: SpanExporter = there[alias].load()()
            except Exception as error:
                raise Refused(
                    f"the exporter {name} of traces cannot be used: {error}"
                ) from error
            return exporter
    log.warning(
        "no traces are sent: there is no exporter %s; one for otlp is installed by"
        " pip install opentelemetry-exporter-otlp-proto-http",
        name,
    )
    return None


class SpanWriter:
    """Makes spans of the SDK, and gives them to an exporter."""

    def __init__(
        self,
        exporter: SpanExporter,
        *,
        version: str,
        environ: Mapping[str, str] = os.environ,
    ) -> None:
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
        from opentelemetry.sdk.trace.id_generator import IdGenerator

        self._exporter = exporter
        self._ended: list[ReadableSpan] = []
        self._failing = False
        ended = self._ended

        class Collector(SpanProcessor):
            def on_end(self, span: ReadableSpan) -> None:
                ended.append(span)

        class Ids(IdGenerator):
            """Gives those that the next span is to have."""

            trace = span = 0

            def generate_trace_id(self) -> int:
                return self.trace

            def generate_span_id(self) -> int:
                return self.span

        self._ids = Ids()
        about = {"service.version": version}
        if "OTEL_SERVICE_NAME" not in environ:
            about["service.name"] = _SERVICE
        provider = TracerProvider(
            resource=Resource.create(about),
            id_generator=self._ids,
            shutdown_on_exit=False,
        )
        provider.add_span_processor(Collector())
        self._tracer = provider.get_tracer("forge_actors", version)

    def write(self, span: Span) -> None:
        """Make one span, and those within it."""
        from opentelemetry.context import Context
        from opentelemetry.trace import (
            NonRecordingSpan,
            SpanContext,
            TraceFlags,
            set_span_in_context,
        )

        context: Context = Context()
        if (parent := span.parent) is not None:
            remote = SpanContext(
                parent.trace,
                parent.span,
                is_remote=True,
                trace_flags=TraceFlags(parent.flags),
            )
            context = set_span_in_context(NonRecordingSpan(remote), context)
        self._write(span, context)

    def _write(self, span: Span, context: Context) -> None:
        from opentelemetry.trace import Status, StatusCode, set_span_in_context

        self._ids.trace, self._ids.span = span.id.trace, span.id.span
        attributes: Any = span.attributes
        made = self._tracer.start_span(
            span.name, context, attributes=attributes, start_time=_nanos(span.start)
        )
        within = set_span_in_context(made, context)
        for each in span.within:
            self._write(each, within)
        if span.error is not None:
            made.set_status(Status(StatusCode.ERROR, span.error))
        made.end(_nanos(span.end))

    def take(self) -> list[ReadableSpan]:
        """What was made since it was taken last, and is to be kept."""
        taken = self._ended[:]
        self._ended.clear()
        return taken

    def export(self, spans: Sequence[ReadableSpan]) -> None:
        """Send them; those that nobody takes are lost. Blocks."""
        from opentelemetry.sdk.trace.export import SpanExportResult

        problem = "the exporter failed"
        try:
            taken = self._exporter.export(spans) is SpanExportResult.SUCCESS
        except Exception as error:  # noqa: BLE001 - whatever it is, jobs go on
            taken, problem = False, str(error)
        if not taken and not self._failing:
            log.warning("traces are lost: %s", problem)
        elif taken and self._failing:
            log.info("traces are taken again")
        self._failing = not taken

    def close(self) -> None:
        """Nothing more comes. Blocks."""
        try:
            self._exporter.shutdown()
        except Exception as error:  # noqa: BLE001 - as above
            log.warning("the exporter of traces did not end well: %s", error)


def _nanos(seconds: float) -> int:
    return int(seconds * 1_000_000_000)
