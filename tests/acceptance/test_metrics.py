"""A service tells its numbers to whoever asks on its socket."""

from __future__ import annotations

import http.client
import socket
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families as parse

from forge_actors.client.home import socket_path

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def test_the_numbers_of_a_service_are_those_of_its_jobs(unwatched: LiveService) -> None:
    jobs = [unwatched.bash("app", script) for script in ("true", "false", "true")]
    unwatched.wait(*jobs)
    connection = http.client.HTTPConnection("localhost")
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.connect(socket_path(str(unwatched.home)))
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    assert answer.status == 200
    text = answer.read().decode()
    connection.close()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for family in parse(text)
        for sample in family.samples
    }
    assert found["forge_attempts_total", "succeeded"] == 2
    assert found["forge_attempts_total", "failed"] == 1
    assert found["forge_start_delay_seconds_count", "accepted"] == 3
    assert found["forge_connections", "socket"] == 1
    assert found["process_resident_memory_bytes",] > 0
