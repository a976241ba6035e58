"""`/metrics`: the text, as the parser of those who read it understands it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import pytest
import trio
from prometheus_client.parser import text_string_to_metric_families as parse

from forge_actors.domain.errors import Unavailable
from forge_actors.domain.metrics import Family, Histogram
from forge_actors.edges.gateway import metrics
from forge_actors.edges.gateway.event_hub import EventHub
from forge_actors.edges.gateway.messages import Request, Response
from forge_actors.edges.gateway.server import Server
from forge_actors.testing.control import FakeControl

if TYPE_CHECKING:
    from collections.abc import Callable

HOSTILE = 'a"b\\c\nd # é'


async def ask(
    control: FakeControl,
    path: tuple[str, ...] = ("metrics",),
    method: str = "GET",
    own: Callable[[], list[Family]] = list,
) -> Response:
    answer = await metrics.handler(control, own)(Request(method, path, "", {}))
    assert isinstance(answer, Response)
    return answer


async def test_what_is_counted_is_told_with_its_type_and_labels() -> None:
    seen = Histogram((0.1, 1.0))
    for value in (0.05, 0.1, 0.5, 7.0):
        seen.add(value)
    control = FakeControl()
    control.families = [
        Family("forge_a", "gauge", "What?\nThat.", ("x", "y"), {(HOSTILE, "2"): 1.5}),
        Family("forge_b", "counter", "Many.", values={(): 3}),
        Family("forge_c", "histogram", "Long.", ("z",), histograms={("q",): seen}),
        Family("forge_d", "gauge", "None of it.", ("x",)),
    ]
    answer = await ask(control)
    assert answer.status == 200
    assert answer.content_type.startswith("text/plain; version=")
    found = {family.name: family for family in parse(answer.body.decode())}
    [one] = found["forge_a"].samples
    assert (one.labels, one.value) == ({"x": HOSTILE, "y": "2"}, 1.5)
    [two] = found["forge_b"].samples
    assert (two.name, two.value) == ("forge_b_total", 3)
    buckets = {
        float(sample.labels["le"]): sample.value
        for sample in found["forge_c"].samples
        if sample.name == "forge_c_bucket"
    }
    assert buckets == {0.1: 2, 1.0: 3, math.inf: 4}
    rest = {s.name: s.value for s in found["forge_c"].samples if "le" not in s.labels}
    assert rest == {"forge_c_count": 4, "forge_c_sum": pytest.approx(7.65)}
    assert found["forge_d"].samples == []
    assert found["process_open_fds"].samples[0].value > 0


async def test_only_that_path_and_that_method_are_there() -> None:
    control = FakeControl()
    assert (await ask(control, ("metrics", "more"))).status == 404
    refused = await ask(control, method="POST")
    assert (refused.status, refused.headers) == (405, {"allow": "GET"})
    assert (await ask(control, method="HEAD")).status == 200


async def test_without_the_library_the_answer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(metrics, "LIBRARY", "prometheus_client_that_is_not_there")
    answer = await ask(FakeControl())
    assert answer.status == 501
    assert b"forge-actors[gateway]" in answer.body


async def test_a_runtime_that_ends_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    control = FakeControl()

    async def ended() -> list[Family]:
        await trio.lowlevel.checkpoint()
        raise Unavailable("the runtime has ended")

    monkeypatch.setattr(control, "metrics", ended)
    answer = await ask(control)
    assert (answer.status, b"has ended" in answer.body) == (503, True)


async def test_the_gateway_tells_of_its_own_clients() -> None:
    control = FakeControl()
    server, hub = Server(metrics.handler(control, list)), EventHub(control, 7)
    servers = {"socket": server}
    answer = await ask(control, own=lambda: metrics.gateway_families(servers, hub))
    found = {f.name: f.samples[0].value for f in parse(answer.body.decode())}
    assert found["forge_streams"] == found["forge_connections"] == 0
    assert (found["forge_streams_limit"], found["forge_connections_limit"]) == (7, 384)
