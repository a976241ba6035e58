"""How soon jobs that wait for the end of a limit start when that has come."""

from __future__ import annotations

import contextlib
import json
import math
import os
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

from benchmarks.rows import Bench, Sample
from benchmarks.service import Service, ServiceFailed, new_home, running

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

#: Jobs of the provider that run at once.
AT_ONCE = 4
#: Seconds from the refusal to the end of the limit.
LIMITED_SECONDS = 5
SETTINGS = """
[limits]
workers = 16
agents = {at_once}
[providers.claude]
limit = {at_once}
[scheduling]
return_every = "20ms"
[pressure]
min_free_memory_mb = 64
max_load_per_cpu = 10000.0
"""
#: Refuses until the moment in a file, while that is there.
PROGRAM = """\
#!/bin/sh
[ "$1" = --version ] && exec echo 2.1.197
[ "$1" = auth ] && exec echo '{{"loggedIn": true}}'
cat > /dev/null
echo '{{"type":"system","subtype":"init","session_id":"s"}}'
if [ -e {limited} ]; then
    read -r reset < {limited}
    echo '{{"type":"rate_limit_event","rate_limit_info":{{"status":"rejected",\
"resetsAt":'$reset'}}}}'
    echo '{{"type":"result","subtype":"success","is_error":true,"result":"limit"}}'
    exit 1
fi
echo '{{"type":"result","subtype":"success","is_error":false,"result":"done"}}'
"""
Json = dict[str, Any]


def measure(bench: Bench) -> Iterable[Sample]:
    """From the end of the limit to the first start; that no limit is passed and nothing
    starts twice is looked at as well."""
    folder = bench.folder / "returning"
    folder.mkdir()
    limited = folder / "limited"
    home = new_home(bench.folder)
    (home / "settings.toml").write_text(SETTINGS.format(at_once=AT_ONCE))
    with _program(folder, limited), running(home) as service:
        names = service.add_repositories(bench.checkouts[:AT_ONCE])
        reset = math.ceil(time.time()) + LIMITED_SECONDS
        limited.write_text(f"{reset}\n")
        [first] = service.submit(_jobs(names, 1))
        _until(service, "provider_closed")
        limited.unlink()
        jobs = [first, *service.submit(_jobs(names, bench.parked - 1))]
        events = _until(service, "job_succeeded", times=bench.parked)
    begun = _check(events, jobs)
    note = f"{bench.parked} jobs parked at a limit, {AT_ONCE} of them at once"
    yield Sample("limit-return", begun - reset, "s", note)


@contextlib.contextmanager
def _program(folder: Path, limited: Path) -> Iterator[None]:
    """While the block lasts a program that plays an agent is first on the PATH."""
    path = folder / "claude"
    path.write_text(PROGRAM.format(limited=limited))
    path.chmod(0o755)
    before = os.environ["PATH"]
    os.environ["PATH"] = f"{folder}{os.pathsep}{before}"
    try:
        yield
    finally:
        os.environ["PATH"] = before


def _jobs(names: Sequence[str], count: int) -> list[Json]:
    job = {"argv": [], "agent": "claude", "prompt": "Go.", "read_only": True}
    of = (names[number % len(names)] for number in range(count))
    return [{**job, "repo": name, "isolate": False} for name in of]


def _until(service: Service, kind: str, times: int = 1) -> list[Json]:
    """All events, until this was told so often."""
    found: list[Json] = []
    rest = b""
    for piece in service.api.stream(
        "GET", ("events",), query=[("after", 0), ("follow", 1)]
    ):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            found.append(json.loads(line))
            times -= found[-1]["kind"] == kind
            if not times:
                return found
    raise ServiceFailed(f"the events ended before {kind}")


def _check(events: Sequence[Json], jobs: Sequence[str]) -> float:
    """When the first one started, if everything is as it should be.

    Raises:
        ServiceFailed: it is not.
    """
    attempts = dict.fromkeys(jobs, 0)
    running: set[str] = set()
    first = None
    opened = False
    for event in events:
        opened = opened or event["kind"] == "provider_opened"
        if event["kind"] == "job_dispatched":
            running.add(event["job"])
            attempts[event["job"]] += 1
            if opened and first is None:
                first = datetime.fromisoformat(event["at"]).timestamp()
            if len(running) > AT_ONCE:
                raise ServiceFailed(f"{len(running)} ran at once")
        elif event["kind"] in ("job_succeeded", "job_waiting_for_limit"):
            running.discard(event["job"])
    # The first was refused, all others had only to wait.
    wanted = {job: 1 + (job == jobs[0]) for job in jobs}
    if first is None or attempts != wanted:
        raise ServiceFailed(f"attempts: {attempts}")
    return first
