"""What goes of the rest of a home: artifacts, drafts, old stores, history, folders."""

from __future__ import annotations

import json
import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.maintenance import CleanLimits
from forge_actors.domain.rounds import FEEDBACK
from forge_actors.edges.cleanup import wire
from forge_actors.edges.cleanup.walking import ASIDE, Remover
from tests.runtime.cleanup_home import DAY, HOUR, Home
from tests.small_disk import needs_root

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path.resolve() / "home")


def put(path: Path, size: int = 1) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(bytes(size))
    return path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_artifacts_go_with_their_job_or_by_age_and_size(home: Home) -> None:
    for job, ended in [("a", 40 * DAY), ("b", 5 * DAY), ("c", 4 * DAY), ("runs", None)]:
        home.job(job, ended)
    for job in ("a", "b", "c", "runs", "lost"):
        put(home.path / "artifacts" / job / "deep" / "report.html", MIB)
    (home.path / "artifacts" / "My Files").mkdir()
    found = home.clean("artifacts")
    assert found.removals == [("artifacts/a", "older than 30d")]
    assert found.skips == [("artifacts/My Files", "no folder of ours has such a name")]
    room = {"bytes": 3 * MIB, "grace": HOUR}
    found = home.clean("artifacts", later=2 * HOUR, artifacts=room)
    assert found.removals == [
        ("artifacts/lost", "no job has them; older than 1h"),
        ("artifacts/b", "more than 3 MiB are there"),
    ]
    assert names(home.path / "artifacts") == ["My Files", "c", "runs"]
    report = found.reports["artifacts"]
    assert report.size is not None
    assert 2 * MIB < report.size < 3 * MIB
    assert report.bytes >= 2 * MIB


def test_what_a_step_of_a_workflow_is_to_have_stays_until_that_has_ended(
    home: Home,
) -> None:
    for job in ("build", "other"):
        home.job(job, 40 * DAY)
        put(home.path / "artifacts" / job / "1" / "1")
    takes = {"name": "ship", "inputs": [["build", "dist/*"]]}
    steps = [{"name": "build"}, {"name": "other", "after": ["build"]}, takes]
    home.execute(
        "INSERT INTO workflow VALUES ('1w', 'release', 'paused', NULL, ?, x'7b7d')",
        json.dumps({"name": "release", "steps": steps}).encode(),
    )
    for job in ("build", "other"):
        home.execute(
            "INSERT INTO workflow_step VALUES (?, 0, 'succeeded', ?)",
            *(f"1w/{job}", json.dumps({"name": job, "job": job}).encode()),
        )
    home.execute(
        "INSERT INTO workflow VALUES ('1x', 'x', 'running', NULL, x'00', x'00')"
    )
    [(what, _)] = home.clean("artifacts").removals
    assert what == "artifacts/other"
    assert [what for what, _ in home.clean("jobs").removals] == ["job other"]
    home.execute("UPDATE workflow SET state = 'failed' WHERE id = '1w'")
    assert [what for what, _ in home.clean("artifacts").removals] == ["artifacts/build"]
    assert [what for what, _ in home.clean("jobs").removals] == ["job build"]


def test_artifacts_that_a_job_is_to_have_stay_until_it_has_ended(home: Home) -> None:
    home.job("build", 40 * DAY)
    home.job("other", 40 * DAY)
    home.job("takes", None, after=["build", "other"])
    for job in ("build", "other"):
        put(home.path / "artifacts" / job / "1" / "1")
    # One that comes after it and takes nothing is no reason to keep them.
    update = "UPDATE job SET spec = ? WHERE id = 'takes'"
    assert len(home.clean("artifacts", dry_run=True).removals) == 2
    home.execute(update, json.dumps({"inputs": [{"job": "build"}]}).encode())
    [(what, _)] = home.clean("artifacts").removals
    assert what == "artifacts/other"
    ended = "UPDATE job SET state = 'failed', finished_at = 1 WHERE id = 'takes'"
    home.execute(ended)
    [(what, _)] = home.clean("artifacts").removals
    assert what == "artifacts/build"


def test_inputs_go_when_their_job_has_ended(home: Home) -> None:
    home.job("runs", None)
    home.job("ended")
    for name in ("runs.1", "runs.2", "ended.1", "lost.7", "notes"):
        put(home.path / "inputs" / name / "build" / "out").chmod(0o400)
    assert home.clean("temporary", later=14 * 60).removals == []
    removed = [what for what, _ in home.clean("temporary", later=16 * 60).removals]
    assert sorted(removed) == ["inputs/ended.1", "inputs/lost.7"]
    assert names(home.path / "inputs") == ["notes", "runs.1", "runs.2"]


def test_drafts_and_workshops_go_after_a_while(home: Home) -> None:
    drafts = ["settings.toml.new", "control.sock.path.new", "receipts/1.jsonl.new"]
    drafts += ["secrets/token.77.new", "importing/store.sqlite", "restoring/x/y"]
    kept = ["notes.new", "settings.toml", "receipts/1.jsonl", "secrets/token"]
    kept += ["logs/x.new", "importing-mine/file"]
    for name in (*drafts, *kept):
        put(home.path / name)
    early = home.clean("temporary", later=14 * 60)
    assert early.removals == []
    report = early.reports["temporary"]
    assert report.due_at == pytest.approx(home.now + 15 * 60, abs=60)
    planned = home.clean("temporary", later=16 * 60, dry_run=True)
    found = home.clean("temporary", later=16 * 60)
    assert sorted(found.removals) == sorted(planned.removals)
    assert sorted(what for what, _ in found.removals) == sorted(
        [*drafts[:4], "importing", "restoring"]
    )
    assert all((home.path / name).exists() for name in kept)
    assert names(home.path / ASIDE) == []


def test_a_workshop_in_which_something_happens_stays(home: Home) -> None:
    old = put(home.path / "importing" / "store.sqlite")
    os.utime(old, (0, 0))
    os.utime(old.parent, (home.now + HOUR, home.now + HOUR))
    assert home.clean("temporary", later=HOUR).removals == []
    assert old.exists()


def test_clones_that_never_became_a_repository_go_after_a_day(home: Home) -> None:
    clones = home.path / "clones"
    for name in ("half", "known", "removed"):
        put(clones / name / ".git" / "HEAD")
    home.repository("r2", path=str(clones / "known"))
    home.repository("r3", path=str(clones / "removed"), removed_at=1.0)
    assert home.clean("temporary", later=23 * HOUR).removals == []
    home.clean("temporary", later=25 * HOUR)
    # Of what was a repository somebody's work may be in it.
    assert names(clones) == ["known", "removed"]


def test_prompts_go_when_no_job_has_them(home: Home) -> None:
    used, unused, feedback = "a" * 64, "b" * 64, "c" * 64
    for name in (used, unused, feedback, "notes.md"):
        put(home.path / "prompts" / name)
    home.job("j1")
    spec = json.dumps({"agent": {"name": "claude", "prompt": used}}).encode()
    home.execute("UPDATE job SET kind = 'agent-run', spec = ?", spec)
    home.job("j2", None)
    env = {FEEDBACK: str(home.path / "prompts" / feedback)}
    home.execute(
        "UPDATE job SET work = 'w1', spec = ? WHERE id = 'j2'",
        json.dumps({"env": env}).encode(),
    )
    assert home.clean("temporary", later=14 * 60).removals == []
    [(what, _)] = home.clean("temporary", later=16 * 60).removals
    assert what == f"prompts/{unused}"
    assert names(home.path / "prompts") == [used, feedback, "notes.md"]


@needs_root
def test_one_thing_that_cannot_be_touched_keeps_nobody_from_the_others(
    home: Home, tmp_path: Path
) -> None:
    put(home.path / "settings.toml.new")
    home.repository("gone", removed_at=1.0)
    (home.path / "worktrees" / "gone").mkdir(parents=True)
    (tmp_path / "other").mkdir()
    place = home.path / "importing"
    place.mkdir()
    for target in (place, home.path / "worktrees" / "gone"):
        command = ["mount", "--bind", str(tmp_path / "other"), str(target)]
        subprocess.run(command, check=True)
    try:
        found = home.clean("temporary", "repositories", later=400 * DAY)
    finally:
        for target in (place, home.path / "worktrees" / "gone"):
            subprocess.run(["umount", str(target)], check=True)
    assert [what for what, _ in found.removals] == ["settings.toml.new"]
    assert {reason for _, reason in found.skips} == {
        "something is mounted there",
        "something is kept in it",
    }
    assert not any(report.failed for report in found.reports.values())


def test_a_removal_that_was_cut_off_is_ended(home: Home) -> None:
    for number in range(200):
        put(home.path / "artifacts" / "lost" / str(number))
    cut = {"grace": 0.0}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Remover.__init__, "__kwdefaults__", {"max_entries": 50})
        first = home.clean("artifacts", later=HOUR, artifacts=cut)
    assert "no time to remove all of it" in first.skips[0][1]
    assert names(home.path / "artifacts") == []
    assert names(home.path / ASIDE) != []
    found = home.clean("temporary")
    assert names(home.path / ASIDE) == []
    assert found.reports["temporary"].removed == 1
    assert found.reports["temporary"].size is not None


def test_of_the_stores_that_were_set_aside_the_newest_stays(home: Home) -> None:
    for folder in ("replaced", "damaged"):
        for day in range(1, 6):
            name = f"store-2026010{day}T000000Z.sqlite"
            path = put(home.path / folder / name, MIB)
            if day == 1:
                put(path.with_name(f"{name}-wal"), MIB)
    put(home.path / "replaced" / "mine.sqlite")
    assert home.clean("backups").removals == []
    policy = {"count": 3, "age": 90 * DAY}
    found = home.clean("backups", later=DAY, backups=policy)
    assert [name[11:14] for name in names(home.path / "damaged")] == [
        "103",
        "104",
        "105",
    ]
    assert len(found.removals) == 6
    report = home.report("backups", later=100 * DAY, backups=policy)
    assert names(home.path / "damaged") == ["store-20260105T000000Z.sqlite"]
    assert names(home.path / "replaced") == [
        "mine.sqlite",
        *names(home.path / "damaged"),
    ]
    assert report.size is not None
    assert 2 * MIB <= report.size < 3 * MIB


def test_events_go_by_their_age_and_their_number(home: Home) -> None:
    for row in range(100):
        at = home.now - (100 - row) * DAY
        events = f'[{{"kind":"limits","at":{at}}},{{"kind":"limits","at":{at}}}]'
        home.execute(
            "INSERT INTO history VALUES (?, CAST(? AS BLOB))", 1 + 2 * row, events
        )

    def before(**policy: float) -> int:
        found = home.clean("events", events=dict(policy))
        [asked] = [each for each in found.said if isinstance(each, wire.ForgetEvents)]
        return asked.before

    # The row of the day before has number 2 * 89 + 1.
    assert before(age=10.5 * DAY) == 181
    # A row goes as a whole, so one more event stays than would have to.
    assert before(count=50) == 149
    assert before(age=80.5 * DAY, count=50) == 149
    assert before(count=1, grace=30.5 * DAY) == 141
    assert home.clean("events", events={"on": False}).removals == []
    planned = home.clean("events", dry_run=True, events={"count": 50})
    assert planned.removals == [("events before number 150", "more than 50 are there")]
    assert not any(isinstance(each, wire.ForgetEvents) for each in planned.said)
    report = home.report("events", events={"age": 200 * DAY})
    assert report.due_at == pytest.approx(home.now + 100 * DAY)


def test_an_empty_folder_of_a_removed_repository_goes(home: Home) -> None:
    home.repository("gone", removed_at=home.now - 8 * DAY)
    home.repository("recent", removed_at=home.now - DAY)
    home.repository("full", removed_at=home.now - 8 * DAY)
    for repo in ("gone", "recent", "full", "r1", "stranger"):
        (home.path / "worktrees" / repo).mkdir(parents=True)
    put(home.path / "worktrees" / "full" / "job" / "work")
    early = home.clean("repositories")
    assert early.removals == []
    found = home.clean("repositories", later=8 * DAY)
    assert [what for what, _ in found.removals] == [
        "worktrees/gone",
        "worktrees/recent",
    ]
    assert ("worktrees/full", "something is kept in it") in found.skips
    assert names(home.path / "worktrees") == ["full", "r1", "stranger"]


def test_what_nobody_knows_is_counted_and_stays(home: Home) -> None:
    put(home.path / "films" / "long.mkv", 3 * MIB)
    put(home.path / "agent.log", MIB)
    home.log("j1", MIB)
    report = home.clean(later=4000 * DAY).reports["other"]
    assert report.size is not None
    assert 4 * MIB < report.size < 5 * MIB
    assert (home.path / "films" / "long.mkv").exists()
    assert (home.path / "agent.log").exists()


def test_what_others_have_put_there_is_counted_only_up_to_a_number(
    home: Home,
) -> None:
    for number in range(2000):
        put(home.path / "films" / str(number))
    assert home.report("other", limits=CleanLimits(scans=1000)).size is None
    assert home.report("other").size is not None


def test_a_plan_changes_nothing_at_all(home: Home) -> None:
    home.job("old", 40 * DAY, output=1)
    home.log("lost")
    put(home.path / "artifacts" / "lost" / "file")
    put(home.path / "settings.toml.new")

    def seen() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.lstat().st_ino, path.lstat().st_mtime_ns)
            for path in home.path.rglob("*")
        }

    before = seen()
    found = home.clean(later=100 * DAY, dry_run=True)
    assert seen() == before
    assert {what for what, _ in found.removals} == {
        "job old",
        "logs/lost.1.stdout",
        "artifacts/lost",
        "settings.toml.new",
    }
