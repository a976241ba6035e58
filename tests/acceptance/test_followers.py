"""Many clients that follow and wait; and a history that `events` alone can rebuild."""

from __future__ import annotations

import json
import subprocess
import threading
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from forge_actors.client.sync import Service as Connection
from forge_actors.domain.events import EventView
from forge_actors.domain.history import History
from forge_actors.domain.jobs import WAITING
from tests.acceptance.machine import closes_to, descriptors
from tests.acceptance.service import PROGRAM, Json, LiveService

if TYPE_CHECKING:
    from collections.abc import Callable

FOLLOWERS, WAITERS, READERS = 20, 15, 15


class Crowd:
    """Clients in threads of their own, each over a connection of its own."""

    def __init__(self, service: LiveService) -> None:
        self._home = str(service.home)
        self._threads: list[threading.Thread] = []
        self.seen: list[list[int]] = []
        self.ends: list[Json] = []
        self.logs: list[bytes] = []

    def start(self, count: int, client: Callable[[Connection], None]) -> None:
        for _ in range(count):
            connection = Connection(self._home)
            thread = threading.Thread(target=client, args=(connection,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()

    def follow(self, job: str, after: int) -> Callable[[Connection], None]:
        """Follow the events until those of the job end."""

        def client(connection: Connection) -> None:
            seen: list[int] = []
            rest = b""
            query = [("after", after), ("follow", 1)]
            for piece in connection.stream("GET", ("events",), query=query):
                *lines, rest = (rest + piece).split(b"\n")
                events = [json.loads(line) for line in lines]
                seen += [event["seq"] for event in events]
                if any(
                    e["job"] == job and e["kind"] == "job_succeeded" for e in events
                ):
                    break
            self.seen.append(seen)

        return client

    def wait(self, job: str) -> Callable[[Connection], None]:
        def client(connection: Connection) -> None:
            self.ends += connection.post("wait", body={"jobs": [job]})["jobs"]

        return client

    def read(self, job: str) -> Callable[[Connection], None]:
        def client(connection: Connection) -> None:
            path = ("jobs", job, "logs", "stdout")
            pieces = connection.stream("GET", path, query=[("follow", 1)])
            self.logs.append(b"".join(pieces))

        return client


def test_fifty_clients_that_wait_and_follow_are_no_trouble(
    unwatched: LiveService,
) -> None:
    gate = unwatched.gate()
    job = unwatched.bash("app", f"echo begin; {gate.wait}; echo end", "--read-only")
    unwatched.pid_of(job)
    before = descriptors(unwatched.pid)
    after = unwatched.events()[-1].seq
    crowd = Crowd(unwatched)
    crowd.start(FOLLOWERS, crowd.follow(job, after))
    crowd.start(WAITERS, crowd.wait(job))
    crowd.start(READERS, crowd.read(job))
    lines: list[Json] = [{"repo": "app", "argv": ["true"], "read_only": True}] * 100
    unwatched.wait(*unwatched.batch(lines))
    # A short request is answered beside all of them.
    assert unwatched.json("status")["ready"] is True
    gate.open()
    crowd.join()
    entries = unwatched.events()
    ended = next(e.seq for e in entries if e.job == job and e.kind == "job_succeeded")
    wanted = [entry.seq for entry in entries if after < entry.seq <= ended]
    assert len(crowd.seen) == FOLLOWERS
    for seen in crowd.seen:
        assert seen[: len(wanted)] == wanted
    assert [end["state"] for end in crowd.ends] == ["succeeded"] * WAITERS
    assert crowd.logs == [b"begin\nend\n"] * READERS
    unwatched.wait(unwatched.bash("app", "true"))
    assert closes_to(unwatched.pid, before)


def test_followers_that_are_killed_leave_nothing_behind(unwatched: LiveService) -> None:
    """L-07: of every verb that follows."""
    gate = unwatched.gate()
    job = unwatched.bash("app", gate.wait)
    unwatched.pid_of(job)
    before = descriptors(unwatched.pid)
    words = [
        [PROGRAM, "--home", str(unwatched.home), *verb]
        for verb in (
            ("events", "-f", "--after", "0"),
            ("wait", job),
            ("logs", "-f", job),
        )
    ]
    clients = [
        subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        for call in words
    ]
    first = clients[0].stdout
    assert first is not None
    assert b"runtime_started" in first.readline()
    for client in clients:
        client.kill()
        client.wait()
        assert client.stdout is not None
        client.stdout.close()
    gate.open()
    assert unwatched.end_of(job)["state"] == "succeeded"
    assert closes_to(unwatched.pid, before)


def test_a_follower_is_told_that_the_service_ended(service: LiveService) -> None:
    call = [PROGRAM, "--home", str(service.home), "events", "-f", "--after", "0"]
    with subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert b"runtime_started" in one.stdout.readline()
        service.terminate()
        _, err = one.communicate()
    assert one.returncode == 0
    assert b"ended, so nothing more comes" in err


def history_of(service: LiveService) -> History:
    """What `events --json` alone tells."""
    history = History()
    out = service.cli("events", "--json", "--after", "0", status=0).raw
    for line in out.splitlines():
        event = msgspec.json.decode(line, type=EventView)
        history.apply(event)
        if event.kind == "job_dispatched":
            assert event.job is not None
            assert history.faults(event.job) == []
    return history


def check(history: History, service: LiveService) -> None:
    """Compare with what the other verbs say."""
    jobs = {job["id"]: job for job in service.json("jobs", "--all")}
    assert history.jobs.keys() == jobs.keys()
    for job in history.jobs.values():
        shown = jobs[job.id]
        assert job.attempt == shown["attempt"]
        # What a job waits for now is looked at when somebody asks, and told later.
        assert job.state == shown["state"] or {job.state, shown["state"]} <= WAITING
        assert (job.kind, job.priority) == (shown["kind"], shown["priority"])
        assert list(map(str, job.claims)) == shown["claims"]
        assert list(job.after) == shown["after"]
        assert history.repositories[job.repo].name == shown["repo"]
    known = {entry["name"]: entry for entry in service.json("repo", "list")}
    past = {r.name: r for r in history.repositories.values() if not r.removed}
    assert {name: r.enabled for name, r in past.items()} == {
        name: entry["enabled"] for name, entry in known.items()
    }
    running = Counter(
        history.jobs[job].repo for held in history.leases.values() for job in held
    )
    assert {r.name: running[r.id] for r in past.values()} == {
        name: entry["running"] for name, entry in known.items()
    }


def test_the_history_is_whole_after_a_crash(service: LiveService) -> None:
    service.add("other")
    bad = service.submit("--repo", "app", "--name", "bad", "--", "false")
    behind = service.submit("--repo", "app", "--after", bad, "--", "true")
    service.wait(bad, behind)
    gate = service.gate()
    again = service.bash("app", gate.wait, "--replay", "safe", "--kind", "check")
    once = service.bash("other", gate.wait)
    waits = service.bash("other", "true")
    for job in (again, once):
        service.until(job, "job_running")
    history = history_of(service)
    check(history, service)
    assert {history.jobs[job].state for job in (again, once)} == {"running"}
    assert history.holders("heavy_checks") == (again,)
    service.crash()
    quiet = history_of(service)
    assert quiet.jobs[again].state == "running"
    service.start()
    gate.open()
    ends = {end["id"]: end for end in service.wait(again, once, waits)}
    assert ends[again]["attempt"] == 2
    assert ends[once]["state"] == "human_attention_required"
    history = history_of(service)
    check(history, service)
    assert history.leases == {}
    assert history.runtime == service.pid
    service.terminate()
    stopped = history_of(service)
    assert stopped.runtime is None
    assert stopped.jobs.keys() == history.jobs.keys()
