"""Everything a chaos run left behind, gathered once it is over."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from benchmarks.chaos.told import Run, read_told
from forge_actors.client import sync
from forge_actors.domain.errors import Unavailable
from forge_actors.domain.events import EventView
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from benchmarks.chaos.kills import Blow
    from benchmarks.chaos.plans import Place, Plan
    from benchmarks.chaos.processes import Start

PAGE = 1000
Json = dict[str, Any]


@dataclass
class Evidence:
    """What the harness did, what the jobs wrote, and what the service says.

    Moments are seconds of the monotonic clock; those of events are converted.
    """

    place: Place
    plans: Mapping[str, Plan]
    #: Ids that were answered, by plan.
    ids: Mapping[str, str]
    blows: list[Blow]
    starts: list[Start]
    #: Of each kind of token how many there are.
    limits: Mapping[str, int]
    runs: dict[str, list[Run]] = field(default_factory=dict)
    events: list[EventView] = field(default_factory=list)
    #: As the service shows them at the end, by id.
    views: dict[str, Json] = field(default_factory=dict)
    #: The last line of the output that the service kept, by id.
    last_lines: dict[str, str] = field(default_factory=dict)
    #: State and exit code of jobs as they were when their end was first seen.
    seen: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    #: Of each kind of token, how many ran at once by the jobs' own account.
    most: dict[str, int] = field(default_factory=dict)
    #: What was wrong when it was seen.
    wrong: list[str] = field(default_factory=list)
    #: From a moment of the wall clock to one of the monotonic clock.
    to_monotonic: float = field(default_factory=lambda: time.monotonic() - time.time())

    def at(self, event: EventView) -> float:
        return datetime.fromisoformat(event.at).timestamp() + self.to_monotonic

    def plan_of(self, job: str) -> Plan | None:
        name = self.views[job]["name"] if job in self.views else None
        return None if name is None else self.plans.get(name)

    def look(self, home: Path) -> None:
        """Remember how the jobs are that have ended by now, if there is a service."""
        try:
            views = list(list_jobs(home))
        except Unavailable:
            return
        for view in views:
            if view["state"] in TERMINAL:
                now = (view["state"], view["exit_code"])
                before = self.seen.setdefault(view["id"], now)
                if before != now:
                    self.wrong.append(f"{view['id']} was {before}, and is {now} now")

    def gather(self, home: Path) -> None:
        """What the service and the jobs say, when all is over."""
        self.look(home)
        self.views = {view["id"]: view for view in list_jobs(home)}
        self.events = list(read_events(home))
        self.runs = {
            name: read_told(self.place.told(plan)) for name, plan in self.plans.items()
        }
        service = sync.Service(str(home))
        for name, job in self.ids.items():
            if self.runs[name] and job in self.views:
                path = ("jobs", job, "logs", "stdout")
                pieces = service.stream("GET", path, query=[("tail", 1)])
                self.last_lines[job] = b"".join(pieces).decode(errors="replace").strip()


def list_jobs(home: Path) -> Iterator[Json]:
    """All jobs, newest first."""
    service = sync.Service(str(home))
    before: str | None = None
    while True:
        query = [("limit", PAGE), ("before", before)]
        page: list[Json] = service.get("jobs", query=query)["jobs"]
        yield from page
        if len(page) < PAGE:
            return
        before = page[-1]["id"]


def read_events(home: Path) -> Iterator[EventView]:
    """The whole event log, oldest first."""
    service = sync.Service(str(home))
    after = 0
    while True:
        query = [("after", after), ("limit", PAGE), ("follow", 0)]
        body = b"".join(service.stream("GET", ("events",), query=query))
        page = [
            msgspec.convert(json.loads(line), EventView) for line in body.splitlines()
        ]
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].seq
