"""`/metrics`: the numbers of a runtime in the text form that Prometheus reads.

`prometheus_client` writes it; it is a part of the extra `gateway`, and is loaded when
somebody asks for the first time. What it is given was read for this one answer.
"""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.metrics import Family, gauge
from forge_actors.edges.gateway.messages import Response, error_response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prometheus_client.core import Metric

    from forge_actors.domain.control_metrics import MetricsControl
    from forge_actors.edges.gateway.event_hub import EventHub
    from forge_actors.edges.gateway.messages import Handler, Limits, Request

PATH = "metrics"
LIBRARY = "prometheus_client"


def handler(control: MetricsControl, own: Callable[[], list[Family]]) -> Handler:
    """Answers with the numbers of `control`, and with those of the gateway itself."""
    return partial(_answer, control, own)


class Clients(Protocol):
    """Somebody who serves clients."""

    @property
    def connections(self) -> int: ...

    @property
    def limits(self) -> Limits: ...


def gateway_families(servers: dict[str, Clients], hub: EventHub) -> list[Family]:
    """How much of a gateway is taken, of each of its servers by its name."""
    return [
        Family(
            "forge_connections",
            "gauge",
            "Clients that are connected, readers of streams included.",
            ("over",),
            {(name,): each.connections for name, each in servers.items()},
        ),
        Family(
            "forge_connections_limit",
            "gauge",
            "Clients there may be beside readers of streams.",
            ("over",),
            {(name,): each.limits.connections for name, each in servers.items()},
        ),
        gauge("forge_streams", "Readers of events as a stream.", hub.readers),
        gauge("forge_streams_limit", "Readers there may be.", hub.limit),
    ]


async def _answer(
    control: MetricsControl, own: Callable[[], list[Family]], request: Request
) -> Response:
    if request.path != (PATH,):
        path = "/" + "/".join(request.path)
        return error_response(404, "NO_SUCH_ROUTE", f"there is nothing at {path}")
    if request.method not in ("GET", "HEAD"):
        allowed = {"allow": "GET"}
        message = f"/metrics answers GET, not {request.method}"
        return error_response(405, "METHOD_NOT_ALLOWED", message, headers=allowed)
    if find_spec(LIBRARY) is None:
        return error_response(
            501,
            "NOT_INSTALLED",
            "metrics need the extra gateway: pip install 'forge-actors[gateway]'",
        )
    try:
        families = await control.metrics()
    except ForgeError as error:
        return error_response(error.http_status, error.code, str(error))
    body, kind = text_of([*families, *own()])
    return Response(200, body, kind)


def text_of(families: Sequence[Family]) -> tuple[bytes, str]:
    """The text of these metrics and of this process, and its content type."""
    from prometheus_client import CollectorRegistry, ProcessCollector
    from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
    from prometheus_client.registry import Collector

    class Collected(Collector):
        def collect(self) -> Iterator[Metric]:
            return map(_metric, families)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Collected())
    ProcessCollector(registry=registry)
    return generate_latest(registry), CONTENT_TYPE_LATEST


def _metric(family: Family) -> Metric:
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        HistogramMetricFamily,
    )

    if family.kind == "histogram":
        buckets = HistogramMetricFamily(family.name, family.help, labels=family.labels)
        for labels, seen in family.histograms.items():
            bounds = [
                ("+Inf" if bound == float("inf") else repr(bound), float(count))
                for bound, count in seen.up_to()
            ]
            buckets.add_metric(labels, bounds, seen.sum)
        return buckets
    make = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
    metric = make(family.name, family.help, labels=family.labels)
    for labels, value in family.values.items():
        metric.add_metric(labels, float(value))
    return metric
