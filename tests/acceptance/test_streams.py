"""A service tells what happens as server-sent events, to many and for long."""

from __future__ import annotations

import http.client
import json
import resource
import socket
import subprocess
from typing import TYPE_CHECKING, Any

from forge_actors.client.home import socket_path
from tests.acceptance.service import PROGRAM
from tests.acceptance.tcp import SETTINGS, Tcp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import LiveService

SOFT = 256


class Stream:
    """One who listens; a browser would send the same."""

    def __init__(self, service: LiveService, query: str = "", last: str = "") -> None:
        self._connection = http.client.HTTPConnection("localhost")
        self._connection.sock = socket.socket(socket.AF_UNIX)
        self._connection.sock.connect(socket_path(str(service.home)))
        headers = {"Accept": "text/event-stream"}
        if last:
            headers["Last-Event-ID"] = last
        self._connection.request("GET", f"/v1/events{query}", headers=headers)
        self.answer = self._connection.getresponse()
        self.last = last

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        """The name and the data of each event, to a clean end."""
        name = "message"
        while raw := self.answer.readline():
            line = raw.decode().rstrip("\n")
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
            elif field == "id":
                self.last = value
            elif field == "data":
                yield name, json.loads(value)
                name = "message"

    def close(self) -> None:
        self._connection.close()
        self.answer.close()


def test_readers_hear_of_every_move_and_of_the_end(unwatched: LiveService) -> None:
    whole, filtered = Stream(unwatched), Stream(unwatched, "?repo=app&kind=job_running")
    job = unwatched.bash("app", "true")
    unwatched.wait(job)
    seen = []
    for name, event in whole:
        assert name == "message"
        seen.append(event["kind"])
        if event["kind"] == "job_succeeded":
            break
    wanted = [e.kind for e in unwatched.events() if e.job == job]
    assert seen == wanted
    assert next(iter(filtered))[1]["job"] == job
    later = Stream(unwatched, last=whole.last)
    whole.close()
    second = unwatched.bash("app", "true")
    unwatched.wait(second)
    unwatched.cli("stop")
    told = list(later)
    assert [event["kind"] for _, event in told if event.get("job") == second] == wanted
    assert told[-1] == ("end", {"reason": "the service stops"})
    for stream in (filtered, later):
        stream.close()


def test_a_service_takes_the_files_it_may_have_and_its_jobs_what_is_usual(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("[status]\nenabled = false\n[limits]\nworkers = 100\n")
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    serve = [PROGRAM, "--home", str(service.home), "serve", "--detach"]
    shell = ["bash", "-c", f'ulimit -Sn {SOFT}; exec "$@"', "-", *serve]
    subprocess.run(shell, capture_output=True, check=True)
    service.find()
    service.add("app")
    files = service.json("status")["open_files"]
    most = 65_536 if hard == resource.RLIM_INFINITY else min(hard, 65_536)
    assert files["limit"] == most
    assert files["streams"] == 2000
    assert files["workers"] == (SOFT - 32) // 6
    assert service.json("status")["capacity"]["workers"]["limit"] == files["workers"]
    job = service.bash("app", "ulimit -Sn; ulimit -Hn")
    service.wait(job)
    whole = b"unlimited" if hard == resource.RLIM_INFINITY else b"%d" % hard
    assert service.log(job).split() == [b"%d" % SOFT, whole]
    streams = [Stream(service, "?job=" + job) for _ in range(SOFT + 20)]
    assert {stream.answer.status for stream in streams} == {200}
    assert service.json("status")["ready"] is True
    for stream in streams:
        stream.close()


def test_a_stream_over_tcp_takes_a_token_and_no_place_of_others(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service(f"{SETTINGS}tcp_connections = 2\n")
    service.start()
    service.add("app")
    tcp = Tcp(service)
    streams, answers = [], []
    for _ in range(5):
        connection = http.client.HTTPConnection("127.0.0.1", tcp.port)
        headers = {"Accept": "text/event-stream", **tcp.bearer}
        connection.request("GET", "/v1/events?kind=job_succeeded", headers=headers)
        streams.append(connection)
        answers.append(connection.getresponse())
    assert {answer.status for answer in answers} == {200}
    service.wait(service.bash("app", "true"))
    for answer in answers:
        assert answer.readline() == b"retry: 2000\n"
        assert answer.readline() == b"\n"
        assert answer.readline().startswith(b"id: ")
        assert b'"job_succeeded"' in answer.readline()
        answer.close()
    refused = http.client.HTTPConnection("127.0.0.1", tcp.port)
    refused.request("GET", "/metrics")
    assert refused.getresponse().status == 401
    for connection in (*streams, refused):
        connection.close()
