"""Years of commits that a schedule answers: each that was seen is decided once."""

from __future__ import annotations

import random

import pytest

from forge_actors.domain.arriving import signalled
from forge_actors.domain.causes import Branch
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.schedules import (
    DAY,
    Definition,
    Occurrence,
    Policies,
    Progress,
    Schedule,
    occurrence_id,
)
from forge_actors.domain.scheduling import (
    Situation,
    advance,
    ended,
    next_moment,
    rule,
    ruled,
    set_back,
    submitted,
)
from forge_actors.domain.sightings import RefsSeen, read, see_refs, written
from forge_actors.domain.triggers import On

START = 1_767_323_045.0


class Years:
    """A branch that moves, and a schedule that waits for that, in time that jumps."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        misfire, overlap = self.chance.choice(
            [("skip", "skip"), ("once", "queue"), ("once", "cancel"), ("all", "queue")]
        )
        policies = Policies(
            misfire=misfire,
            overlap=overlap,
            jitter=self.chance.choice((0.0, 30.0)),
            cooldown=self.chance.choice((0.0, 600.0)),
            daily_budget=self.chance.choice((None, 3600.0)),
        )
        trigger = On(Branch("main"), self.chance.choice((0.0, 7200.0)))
        job = JobRequest(repo="app", argv=["true"])
        definition = Definition("s", "repo", trigger, job, policies)
        seen = written(RefsSeen({"main": f"{0:040}"}))
        self.schedule = Schedule("id", 1, definition, Progress(START, seen=seen))
        self.wall = START
        self.commits = 0
        #: Jobs that there are, whatever is forgotten of the schedule.
        self.jobs: set[str] = set()
        self.finals: dict[str, Occurrence] = {}
        self.saved = self.schedule, dict(self.finals)

    def go_on(self) -> None:
        """Some time passes; there is a commit, a clock that is set, or a kill."""
        ahead = self.chance.expovariate(1 / (DAY / 2))
        due = next_moment(self.schedule)
        self.wall = max(self.wall, min(due, self.wall + ahead))
        kind = self.chance.random()
        if kind < 0.3:
            self.commits += 1
        elif kind < 0.33:
            self.wall += self.chance.uniform(-3 * 3600, 3 * 3600)
            self.schedule = set_back(self.schedule, self.wall)
        elif kind < 0.4:
            self.schedule, self.finals = self.saved[0], dict(self.saved[1])
        if self.chance.random() < 0.8:
            self.look()
        for job in self.schedule.progress.jobs:
            if self.chance.random() < 0.7:
                self.schedule = ended(
                    self.schedule, job, self.wall, good=True, ran=600.0
                )
        self.decide()

    def look(self) -> None:
        seen = read(self.schedule.progress.seen, RefsSeen)
        now, windows = see_refs(seen, {"main": f"{self.commits:040}"}, self.wall)
        self.schedule, told = signalled(
            self.schedule, windows, self.wall, seen=written(now)
        )
        self.record(told)
        # A window is saved before its job is made, in whatever is saved with it.
        self.saved = self.schedule, dict(self.finals)

    def decide(self) -> None:
        self.schedule, told = advance(self.schedule, self.wall)
        self.record(told)
        for entry in self.schedule.progress.pending:
            if entry.moment > self.wall:
                continue
            of = occurrence_id("id", entry.key)
            found = rule(self.schedule, entry, Situation(self.wall))
            if of in self.jobs or found.verdict == "run":
                self.jobs.add(of)
                self.schedule, one = submitted(
                    self.schedule, entry, found.reason, of, self.wall
                )
            else:
                self.schedule, one = ruled(self.schedule, entry, found, self.wall)
            self.record([one])
        if self.chance.random() < 0.5:
            self.saved = self.schedule, dict(self.finals)

    def record(self, told: list[Occurrence]) -> None:
        for one in told:
            assert one.reason
            if one.decision != "deferred":
                assert one.id not in self.finals, "it was decided before"
                self.finals[one.id] = one


@pytest.mark.parametrize("seed", range(12))
def test_three_years_with_clock_steps_and_restarts(seed: int) -> None:
    years = Years(seed)
    while years.wall < START + 3 * 365 * DAY:
        years.go_on()
    years.look()
    progress = years.schedule.progress
    seen = read(progress.seen, RefsSeen)
    assert seen is not None
    assert seen.heads == {"main": f"{years.commits:040}"}
    assert seen.moves == progress.number == len(years.finals) + len(progress.pending)
    assert seen.moves > 300
    ran = {one.id for one in years.finals.values() if one.decision == "run"}
    assert ran <= years.jobs
    assert len(ran) > 100
