"""Settings of the traces that a runtime sends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct

if TYPE_CHECKING:
    from collections.abc import Mapping

OFF = "off"
#: Words of OpenTelemetry for the same.
_NONE = ("", "none")


class TelemetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    #: The exporter that traces are given to, by its name: `otlp`, `console`. Where this
    #: is `off`, the variables of OpenTelemetry say whether there is one.
    traces: Annotated[str, Meta(pattern="^[a-z0-9_]{1,64}$")] = OFF

    def exporter(self, environ: Mapping[str, str]) -> str | None:
        """The name of the exporter, if there is to be one."""
        if environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
            return None
        if self.traces != OFF:
            return self.traces
        named = environ.get("OTEL_TRACES_EXPORTER")
        if named is not None:
            first = named.partition(",")[0].strip()
            return None if first in _NONE else first
        for name in (
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
        ):
            if environ.get(name):
                return "otlp"
        return None
