"""What comes to the service by HTTP, and what its clients read of the answers."""

from __future__ import annotations

import json
from typing import NamedTuple

import h11
import msgspec

from forge_actors.client.errors import from_answer
from forge_actors.client.wire import ResponseReader, WireError
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.requests import (
    JobEdit,
    JobRequest,
    Parent,
    encode_argv,
)
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.templates import FromTemplate
from forge_actors.domain.workflow_views import WorkflowRequest
from forge_actors.edges.gateway import events
from forge_actors.edges.gateway.callers import caller
from forge_actors.edges.gateway.messages import Limits, Request, Response
from forge_actors.edges.gateway.plain import make_request, read_plain
from forge_actors.edges.gateway.query import (
    Query,
    at_line,
    check_places,
    decode,
    decode_lines,
)
from forge_actors.edges.gateway.tags import matches, tag_of, tagged
from fuzzing.target import (
    Broken,
    Refusing,
    Target,
    attempt,
    check_message,
    in_pieces,
    pieces_of,
    same,
    text_of,
)

HOSTS = frozenset({"localhost", "127.0.0.1:7777"})
_h11 = Refusing(h11.RemoteProtocolError)
#: What the bodies of some routes are read as.
_BODIES = (JobRequest, JobEdit, ScheduleRequest, WorkflowRequest, FromTemplate, Parent)
_KNOWN = ("limit", "active", "state", "label", "since")


class _Read(NamedTuple):
    """What counts of a request."""

    method: str
    path: tuple[str, ...]
    query: str
    headers: dict[str, str]
    body: bytes


def requests(data: bytes) -> None:
    plain = read_plain(bytearray(data), HOSTS, Limits())
    if plain is None:
        _h11(_general, data)
        return
    if not 0 < plain.size <= len(data):
        raise Broken(f"{plain.size} bytes of {len(data)}")
    request = plain.request
    found = _Read(
        request.method, request.path, request.query, request.headers, request.body
    )
    same(_general(data[: plain.size]), found, "as h11 reads it")
    same(
        read_plain(bytearray(data[: plain.size - 1]), HOSTS, Limits()), None, "cut off"
    )


def _general(data: bytes) -> _Read | None:
    http = h11.Connection(h11.SERVER)
    http.receive_data(data)
    head = http.next_event()
    if not isinstance(head, h11.Request):
        return None
    body = b""
    while isinstance(event := http.next_event(), h11.Data):
        body += bytes(event.data)
    headers = {n.decode("ascii"): v.decode("latin-1") for n, v in head.headers}
    target = head.target.decode("ascii")
    made = make_request(head.method.decode("ascii"), target, headers, body)
    if made is None or event is h11.NEED_DATA:
        return None
    if {".", ".."} & {name for part in made.path for name in part.split("/")}:
        raise Broken(f"{target!r} leads to {made.path}")
    return _Read(made.method, made.path, made.query, made.headers, made.body)


def bodies(data: bytes) -> None:
    kind, body = _BODIES[(data or b"\0")[0] % len(_BODIES)], data[1:]
    found = attempt(decode, body, kind)
    if found is not None:
        same(decode(msgspec.json.encode(found), kind), found, "sent again")


def batches(data: bytes) -> None:
    found = attempt(decode_lines, data)
    if found is None:
        return
    requests, numbers, by_template = found
    if len(requests) != len(numbers) or not set(by_template) <= set(
        range(len(numbers))
    ):
        raise Broken(f"{len(requests)} jobs of {len(numbers)} lines")
    same(sorted(set(numbers)), numbers, "the lines in order")
    attempt(check_places, requests)
    lines = msgspec.json.Encoder().encode_lines(
        [request for place, request in enumerate(requests) if place not in by_template]
    )
    if lines:
        jobs = [r for place, r in enumerate(requests) if place not in by_template]
        same(decode_lines(lines)[0], jobs, "sent again")
    for where in (
        f"jobs[{len(numbers) - 1}].argv",
        f"jobs[{len(numbers) - 1}]",
        "argv",
    ):
        check_message(str(at_line(ForgeError(where), numbers)))


def queries(data: bytes) -> None:
    raw = text_of(data)
    query = attempt(Query, raw, _KNOWN)
    if query is None:
        return
    number = attempt(query.number, "limit", 100, least=1, most=10_000)
    if number is not None and not 1 <= number <= 10_000:
        raise Broken(f"{number} is no limit")
    attempt(query.flag, "active")
    attempt(query.choices, "state", ("queued", "running"))
    attempt(query.one, "since")


def headers(data: bytes) -> None:
    text = data.decode("latin-1")
    answer = Response(200, b"body")
    known = matches(text, tag_of(answer))
    request = Request(
        "GET", ("v1", "events"), text, {"if-none-match": text, "accept": text}
    )
    same(tagged(answer, request).status, 304 if known else 200, "what the client has")
    events.streams(request)
    last = attempt(events._number, text)
    if last is not None and not 0 <= last < 10**16:
        raise Broken(f"{last} is no event")
    attempt(caller, Request("GET", (), "", {"forge-job": text}))


def answers(data: bytes) -> None:
    pieces, whole = pieces_of(data)
    same(_answer(pieces), _answer([whole]), "in pieces")


def _answer(pieces: list[bytes]) -> tuple[object, ...]:
    reader = ResponseReader()
    body = b""
    try:
        for piece in pieces:
            body += reader.feed(piece)
        reader.end()
    except WireError:
        return (False,)
    if reader.status is not None and reader.status >= 400:
        check_message(str(from_answer(reader.status, body)))
    return reader.status, reader.headers, body, reader.complete


_JOB = {
    "repo": "demo",
    "argv": encode_argv(["make", "\udcff"]),
    "claims": ["write:path:src"],
    "timeout": "30m",
    "env": {"A": "b"},
    "labels": ["x"],
}
_LINE = json.dumps(_JOB).encode()
_TEMPLATE = b'{"template":"fix","repo":"demo","values":{"issue":1}}'
_DEEP = b'{"repo":' + b"[" * 2000
_WORDS = (
    *(b'"repo":', b'"argv":[', b'"env":{', b'{"b64":"', b"null", b"1e999", b"\\ud800"),
    *(b'"timeout":', b'"labels":', b'"template":', b"\n", b"9" * 20),
)
_GET = (
    b"GET /v1/jobs?state=queued HTTP/1.1\r\nhost: localhost\r\nx-request-id: a1\r\n\r\n"
)
_POST = (
    b"POST /v1/jobs HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    b"Content-Length: 2\r\nConnection: close\r\n\r\n{}"
)

TARGETS = (
    Target(
        "http-requests",
        "what the quick reader takes for a request is the same request to h11",
        requests,
        (
            *(_GET, _POST, _POST + _GET),
            b"GET /a/%2e%2e/b HTTP/1.1\r\nhost: localhost\r\n\r\n",
            (
                b"POST / HTTP/1.1\r\nhost: localhost\r\n"
                b"transfer-encoding: chunked\r\n\r\n"
                b"2\r\n{}\r\n0\r\n\r\n"
            ),
        ),
        (
            *(b"\r\n", b"content-length: ", b"transfer-encoding: chunked", b"%2f"),
            *(b"host: localhost", b" HTTP/1.1\r\n", b"connection: ", b"%00", b"/../"),
            *(b"POST ", b"DELETE ", b"upgrade: ", b"expect: 100-continue"),
        ),
    ),
    Target(
        "http-bodies",
        "a body is what it is sent as again, or refused with its field",
        bodies,
        (
            *(bytes([n]) + _LINE for n in range(len(_BODIES))),
            b'\2{"name":"n","repo":"r","every":"1h","job":{"argv":["a"]}}',
            b'\3{"name":"n","steps":[{"name":"a","if":"b.c == \\"d\\""}]}',
            b'\5{"job":"a1","attempt":1,"fence":2}',
            *(b"\0" + _DEEP, b'\0{"\\u001b[2J\\u202e":1}', b'\0{"repo":"\xff"}'),
            b'\1{"timeout":1e999,"priority":"\\ud800"}',
        ),
        _WORDS,
    ),
    Target(
        "batches",
        "each line of a batch is a job with its number, or the error names the line",
        batches,
        (
            _LINE + b"\n\n" + _TEMPLATE + b"\n" + _LINE,
            _LINE + b"\n" + _DEEP,
            b'{"template"',
        ),
        _WORDS,
    ),
    Target(
        "queries",
        "parameters are numbers in their range and known words, or refused",
        queries,
        (
            *(b"limit=5&active=1&state=queued&since=2h", b"limt=3", b"limit=%E2%82%AC"),
            *(b"state=quued&limit=1_0", b"%1b%5b2J=1", b"limit=" + b"9" * 5000),
        ),
        (b"limit=", b"&", b"active=", b"state=", b"%1b", b"%ff", b";"),
    ),
    Target(
        "http-headers",
        "tags, jobs and forms in headers mean one thing each",
        headers,
        (
            *(b'"a", W/"b"', b"*", b"a1b2", b"/jobs?x=1", b"//evil.example", b"/\\e"),
            *(b"text/event-stream;q=1", b"format=sse&format=jsonl"),
        ),
        (b'W/"', b"*", b"format=", b"text/event-stream", b"//"),
    ),
    Target(
        "http-answers",
        "an answer is the same in pieces, and an error in it can be shown",
        answers,
        in_pieces(
            b"HTTP/1.1 200 \r\ncontent-length: 5\r\n\r\nhello",
            b"HTTP/1.1 100 \r\n\r\nHTTP/1.1 200 \r\nTransfer-Encoding: chunked\r\n\r\n"
            b"5\r\nhello\r\n1;x\r\n!\r\n0\r\n\r\n",
            b"HTTP/1.1 409 \r\n\r\n"
            b'{"code":"REFUSED","detail":"no \\u001b[2J","field":"x","allowed":[1]}',
            b"HTTP/1.1 204 \r\n\r\n",
            b"HTTP/1.1 400 \r\n\r\n" + b"[" * 2000,
        ),
        (
            *(
                b"\r\n",
                b"content-length: ",
                b"transfer-encoding: chunked",
                b"HTTP/1.1 ",
            ),
            *(b"0\r\n\r\n", b'"code":"', b'"detail":"', b'"field":', b'"allowed":['),
        ),
    ),
)
