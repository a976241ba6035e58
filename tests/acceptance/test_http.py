"""The HTTP interface of a real service over TCP: who gets in, and what stays out."""

from __future__ import annotations

import os
import stat
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import contents
from tests.acceptance.service import PROGRAM, call
from tests.acceptance.tcp import SETTINGS, Tcp

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService


@pytest.fixture
def served(make_service: Callable[[str], LiveService]) -> LiveService:
    service = make_service(SETTINGS)
    service.start()
    return service


@pytest.fixture
def tcp(served: LiveService) -> Tcp:
    return Tcp(served)


def test_a_service_listens_on_loopback_only_and_only_if_told(
    make_service: Callable[[str], LiveService],
) -> None:
    """I-08: by default there is no port at all."""
    service = make_service("")
    service.start()
    assert service.json("status")["service"]["endpoint"] is None
    assert _listening(service.pid) == set()
    service.end()
    settings = service.home / "settings.toml"
    settings.write_text(SETTINGS)
    service.start()
    found = _listening(service.pid)
    port = Tcp(service).port
    assert ("0100007F", port) in found
    assert found <= {("0100007F", port), ("0" * 24 + "01000000", port)}


def _listening(pid: int) -> set[tuple[str, int]]:
    """The addresses and ports that a process listens on."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        name = os.readlink(entry)
        if name.startswith("socket:["):
            inodes.add(name[8:-1])
    found = set()
    for table in ("tcp", "tcp6"):
        path = Path(f"/proc/{pid}/net/{table}")
        for line in path.read_text().splitlines()[1:] if path.exists() else []:
            words = line.split()
            if words[3] == "0A" and words[9] in inodes:
                address, _, port = words[1].partition(":")
                found.add((address, int(port, 16)))
    return found


def test_the_token_is_told_to_nobody(served: LiveService, tcp: Tcp) -> None:
    """I-06: not in an argument, a status, a log, the store or what leaves the home."""
    assert tcp.ask("GET", "/v1/status").status == 200
    link = tcp.ask("POST", "/v1/login-links", {}).value["url"]
    secrets = [tcp.token.encode(), link.partition("ticket=")[2].encode()]
    assert tcp.raw(tcp.head(f"GET {link[len(tcp.endpoint) :]} HTTP/1.1")) == 303
    copy = served.root / "copy.tar"
    served.cli("export", copy, status=0)
    served.cli("backup", served.root / "backup.sqlite", status=0)
    told = [
        served.cli("status", "--json", status=0).raw,
        served.cli("settings", "show", status=0).raw,
        b"".join(entry.kind.encode() for entry in served.events()),
        copy.read_bytes(),
        (served.root / "backup.sqlite").read_bytes(),
    ]
    told += [held for path, held in contents(served.home) if path.name != "api-token"]
    for pid in (served.pid, served.agent_pid):
        told.append(Path(f"/proc/{pid}/cmdline").read_bytes())
        told.append(Path(f"/proc/{pid}/environ").read_bytes())
    for secret in secrets:
        assert not any(secret in text for text in told)


def test_what_is_made_is_for_the_owner_alone_whatever_the_umask(
    make_service: Callable[[str], LiveService],
) -> None:
    """I-06: with a umask of 0 the folder is 0700, files and socket are 0600."""
    service = make_service(SETTINGS)
    command = f"umask 000; exec {PROGRAM} --home {service.home} serve --detach"
    done = subprocess.run(["bash", "-c", command], capture_output=True, check=True)
    service.pid = int(done.stdout)
    service.find()
    home = service.home
    found = {path.name: path.lstat().st_mode for path in home.iterdir()}
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    for name in ("api-token", "control.sock", "agent.sock", "store.sqlite"):
        assert stat.S_IMODE(found[name]) == 0o600, name


@pytest.mark.parametrize("way", ["kill", "terminate"])
def test_a_submit_that_is_repeated_makes_one_job(
    make_service: Callable[[str], LiveService], way: str
) -> None:
    """I-04: twenty repeats at once, one after another service came, and another job."""
    service = make_service(SETTINGS)
    service.start()
    service.add("app")
    job = {"repo": "app", "argv": ["true"], "read_only": True}
    key = {"idempotency_key": "once"}
    with ThreadPoolExecutor(20) as pool:
        ask = Tcp(service).ask
        sent = [
            pool.submit(ask, "POST", "/v1/jobs", {"jobs": [job]}, **key)
            for _ in range(20)
        ]
        answers = [one.result() for one in sent]
    assert {answer.status for answer in answers} == {201}
    [made] = {answer.value["jobs"][0]["id"] for answer in answers}
    getattr(service, way)()
    service.start()
    tcp = Tcp(service)
    again = tcp.ask("POST", "/v1/jobs", {"jobs": [job]}, **key)
    assert again.value["jobs"] == [{"id": made, "existing": True}]
    other = {**job, "argv": ["false"]}
    refused = tcp.ask("POST", "/v1/jobs", {"jobs": [other]}, **key)
    assert (refused.status, refused.value["code"]) == (409, "REFUSED")
    assert len(service.json("jobs")) == 1


def test_what_is_foreign_has_no_effect(served: LiveService, tcp: Tcp) -> None:
    """I-01: whatever name or page it comes by, with the token and without."""
    served.add("app")
    for method, target in (
        ("GET", "/v1/status"),
        ("POST", "/v1/jobs"),
        ("GET", "/v1/events?follow=1"),
    ):
        _try_as_foreigner(tcp, method, target)
    assert served.json("jobs") == []


def _try_as_foreigner(tcp: Tcp, method: str, target: str) -> None:
    body = b'{"jobs":[{"repo":"app","argv":["true"]}]}' if method == "POST" else b""
    length = f"content-length: {len(body)}"
    token = f"authorization: Bearer {tcp.token}"
    first = f"{method} {target} HTTP/1.1"
    hosts = ["evil.test", f"localhost.evil.test:{tcp.port}", "127.0.0.1:1", "localhost"]
    for who in ([], [token]):
        for host in hosts:
            assert tcp.raw(tcp.head(first, length, *who, host=host) + body) == 403
        for origin in ("https://evil.test", "null", "http://127.0.0.1:1"):
            foreign = f"origin: {origin}"
            assert tcp.raw(tcp.head(first, length, foreign, *who) + body) == 403
        nameless = "\r\n".join([first, length, *who, "", ""]).encode() + body
        assert tcp.raw(nameless) == 400
    for wrong in ("", "authorization: Bearer x", "authorization: Basic eDp5"):
        more = [wrong] if wrong else []
        assert tcp.raw(tcp.head(first, length, *more) + body) == 401
    # The form that a page may send without asking first.
    form = [length, "content-type: text/plain", "origin: https://evil.test", token]
    assert tcp.raw(tcp.head(first, *form) + body) == 403


#: Paths that are to lead out of what is served.
TRICKS = (
    "/../../etc/passwd",
    "/v1/../../etc/passwd",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/..%2f..%2fetc%2fpasswd",
    "/v1/jobs/%00",
    "/v1/jobs/..%2f..",
    "//etc/passwd",
    "/v1//",
    "/v1/./jobs",
    "/v1/jobs/%ff%fe",
    "/v1/jobs/x/artifacts/..%2f..%2fapi-token",
    "/v1/jobs/x/logs/../../../api-token",
    "/" + "a" * 15_000,
    "http://evil.test/v1/jobs",
    "*",
)


def test_no_path_leads_outside(tcp: Tcp) -> None:
    token = f"authorization: Bearer {tcp.token}"
    for target in TRICKS:
        status = tcp.raw(tcp.head(f"GET {target} HTTP/1.1", token))
        assert status in (400, 403, 404), target  # 403 at another host
        assert tcp.ask("GET", "/v1/jobs").status == 200


def test_a_service_that_cannot_have_its_port_says_so(
    served: LiveService, tcp: Tcp, make_service: Callable[[str], LiveService]
) -> None:
    other = make_service(f"[gateway]\nport = {tcp.port}\n")
    done = call("--home", other.home, "serve")
    assert done.status == 3
    assert f"port {tcp.port} of 127.0.0.1 cannot be served" in done.err
    assert "Traceback" not in done.err
