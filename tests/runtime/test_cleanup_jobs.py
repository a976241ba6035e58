"""Ended jobs and their output go by the policies, and only what belongs to nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.maintenance import CleanLimits
from forge_actors.edges.cleanup import jobs as jobs_class
from forge_actors.edges.cleanup import wire
from tests.runtime.cleanup_home import DAY, HOUR, Home, Owner

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve() / "home")


def test_jobs_go_by_age_with_all_of_their_output(home: Home) -> None:
    home.job("old", 31 * DAY)
    for name in ("1.stdout", "1.stdout.tail", "1.stdout.times", "2.stderr"):
        home.log("old", name=name)
    home.job("young", 29 * DAY, output=1)
    found = home.clean("jobs")
    assert home.jobs() == ["young"]
    assert home.logs() == ["young.1.stdout"]
    assert found.removals == [("job old", "older than 30d")]
    report = found.reports["jobs"]
    assert (report.removed, report.bytes, report.size) == (1, 4 * 4096, 4096)
    # The other one is the next.
    assert report.due_at == pytest.approx(home.now + DAY)
    assert report.cursor is None


def test_each_repository_keeps_its_newest_jobs(home: Home) -> None:
    home.repository("r2")
    for number in range(6):
        home.job(f"a{number}", DAY + 60 - number, repo="r1")
    for number in range(3):
        home.job(f"b{number}", 2 * DAY - number, repo="r2")
    found = home.clean("jobs", jobs={"count": 4})
    assert home.jobs() == ["a2", "a3", "a4", "a5", "b0", "b1", "b2"]
    assert {reason for _, reason in found.removals} == {
        "more than 4 of its repository are there"
    }
    assert home.clean("jobs", jobs={"count": 4}).removals == []


def test_the_oldest_output_makes_room(home: Home) -> None:
    for number in range(10):
        home.job(f"j{number}", 10 * DAY - number * HOUR, output=MIB)
    found = home.clean("jobs", jobs={"bytes": 4 * MIB})
    assert home.jobs() == ["j6", "j7", "j8", "j9"]
    assert found.reports["jobs"].size == 4 * MIB
    assert found.reports["jobs"].bytes == 6 * MIB


def test_what_has_not_ended_or_ended_just_now_stays(home: Home) -> None:
    home.job("runs", None, output=1)
    home.job("fresh", 60.0, output=1)
    found = home.clean("jobs", jobs={"count": 0, "grace": HOUR})
    assert home.jobs() == ["fresh", "runs"]
    assert found.reports["jobs"].due_at == pytest.approx(home.now - 60 + HOUR)
    later = home.clean("jobs", later=HOUR, jobs={"count": 0, "grace": HOUR})
    assert later.removals == [("job fresh", "more than 0 of its repository are there")]
    assert home.logs() == ["runs.1.stdout"]


def test_what_something_refers_to_stays(home: Home) -> None:
    home.job("a-needed", 40 * DAY)
    home.job("b-retried", 40 * DAY)
    home.job("c-retried-twice", 40 * DAY)
    home.job("d-free", 40 * DAY)
    home.job("e-waits", None, after=["a-needed"])
    home.job("f-retry", 40 * DAY, retry_of="c-retried-twice")
    home.job("g-young", DAY, retry_of="b-retried")
    planned = home.clean("jobs", dry_run=True)
    found = home.clean("jobs")
    assert home.jobs() == ["a-needed", "b-retried", "e-waits", "g-young"]
    assert sorted(planned.removals) == sorted(found.removals)


def test_what_the_owner_does_not_forget_keeps_its_output(home: Home) -> None:
    home.job("old", 40 * DAY, output=1)

    class Refuses(Owner):
        def ask(self, question: wire.Question) -> wire.Answer:
            if isinstance(question, wire.ForgetJobs):
                return wire.Answer(jobs=[])
            return super().ask(question)

    home.owner = Refuses
    found = home.clean("jobs")
    assert found.removals == []
    assert found.skips == [("job old", "the service needs it still")]
    assert home.logs() == ["old.1.stdout"]


def test_where_the_output_cannot_be_reached_the_jobs_stay(home: Home) -> None:
    home.job("old", 40 * DAY, output=1)
    (home.path / "logs").rename(home.path.parent / "elsewhere")
    (home.path / "logs").symlink_to(home.path.parent / "elsewhere")
    found = home.clean("jobs", "logs", later=400 * DAY)
    assert home.jobs() == ["old"]
    assert set(found.skips) == {("logs", "it is a link, or no folder")}
    assert home.logs() == ["old.1.stdout"]


def test_switched_off_nothing_goes_and_it_is_measured_all_the_same(home: Home) -> None:
    home.job("old", 400 * DAY, output=MIB)
    home.log("lost")
    off = {"on": False}
    found = home.clean("jobs", "logs", later=400 * DAY, jobs=off, logs=off)
    assert found.removals == []
    assert (home.jobs(), len(home.logs())) == (["old"], 2)
    assert found.reports["jobs"].size == MIB + 4096


def test_fifty_finished_jobs_make_room_again(home: Home) -> None:
    for number in range(50):
        home.job(f"j{number:02}", 62.0, output=10 * MIB)
    policy = {"age": 1.0, "grace": 1.0}
    assert home.report("jobs", dry_run=True, jobs=policy).bytes == 500 * MIB
    assert len(home.jobs()) == 50
    report = home.report("jobs", jobs=policy)
    assert (report.removed, report.bytes, report.size) == (50, 500 * MIB, 0)
    assert (home.jobs(), home.logs()) == ([], [])


def test_many_jobs_are_decided_a_page_at_a_time(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_class, "PAGE", 10)
    monkeypatch.setattr(jobs_class, "ASKED", 3)
    # Those of a queue that nobody may remove are the oldest.
    kept = [f"a{number:02}" for number in range(12)]
    for number, job in enumerate(kept):
        home.job(job, 50 * DAY - number)
    home.job("waits", None, after=kept)
    for number in range(15):
        home.job(f"b{number:02}", 40 * DAY - number)
    assert [home.report("jobs").removed for _ in range(3)] == [0, 8, 7]
    assert home.cursors == {"jobs": None}
    assert home.jobs() == [*kept, "waits"]


def test_a_visit_that_may_not_do_all_goes_on_from_there(
    home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs_class, "ASKED", 2)
    for number in range(10):
        home.job(f"j{number}", 40 * DAY - number)
    report = home.report("jobs", limits=CleanLimits(removals=3))
    assert (report.removed, len(home.jobs())) == (4, 6)
    assert report.cursor == jobs_class.FIRST
    assert home.report("jobs").cursor is None
    assert home.jobs() == []


def test_output_without_a_job_goes_once_it_is_old(home: Home) -> None:
    home.log("lost", 8192)
    home.job("runs", None, output=1)
    home.job("ended", 400 * DAY, output=1)
    early = home.clean("logs", later=6 * DAY)
    assert early.removals == []
    planned = home.clean("logs", later=8 * DAY, dry_run=True)
    assert "lost.1.stdout" in home.logs()
    found = home.clean("logs", later=8 * DAY)
    assert home.logs() == ["ended.1.stdout", "runs.1.stdout"]
    assert found.removals == planned.removals
    assert found.removals == [("logs/lost.1.stdout", "no job has it; older than 7d")]
    assert found.reports["logs"].bytes == 8192


def test_names_that_nobody_knows_stay(home: Home) -> None:
    for name in ("notes.txt", "Job.1.stdout", "job.x.stdout", "j.1.stdout.bak"):
        (home.path / "logs" / name).write_text("mine")
    (home.path / "logs" / "j.1.stdout").mkdir()
    odd = bytes(home.path / "logs") + b"/\xff.1.stdout"
    with open(odd, "wb"):
        pass
    found = home.clean("logs", later=4000 * DAY)
    assert found.removals == []
    assert len(found.skips) == len(home.logs()) == 6
    assert {reason for _, reason in found.skips} == {"no file of ours has such a name"}
