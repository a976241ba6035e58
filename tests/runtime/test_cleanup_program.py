"""One run of the clean-up program: its order, its budgets, what a class can spoil."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.domain.cleaning import CLASSES, Removal, Skip
from forge_actors.domain.fence import Claim
from forge_actors.domain.maintenance import CleanLimits, CleanOrder
from forge_actors.edges.cleanup import wire
from forge_actors.runtime.cleanup.program import clean, plan
from forge_actors.runtime.cleanup.talk import RunOver
from tests.runtime.cleanup_kit import Doing, Heard, home_with, order, visited_at

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.cleaning import CleanClass, Cleaner, Desk


def remove_all(desk: Desk) -> None:
    for number in range(1000):
        if not desk.may_go_on():
            return
        desk.scanned()
        desk.removed(Removal("logs", f"file {number}", "it is old", 10))


def test_the_class_that_waited_longest_is_visited_first(tmp_path: Path) -> None:
    moments = {name: 100.0 + place for place, name in enumerate(reversed(CLASSES))}
    moments["backups"] = 5.0
    heard = Heard()
    clean(order(home_with(tmp_path, *visited_at(**moments))), heard, {})
    rest = [name for name in reversed(CLASSES) if name != "backups"]
    assert heard.visits == ["backups", *rest]


def test_a_visit_is_told_of_before_it_begins(tmp_path: Path) -> None:
    heard = Heard()

    def look(_: Desk) -> None:
        assert heard.visits[-1] == "logs"

    clean(order(home_with(tmp_path)), heard, {"logs": Doing("logs", look)})
    assert heard.reports["logs"].failed == 0


def test_a_class_that_fails_is_named_and_the_others_are_visited(tmp_path: Path) -> None:
    def fail(desk: Desk) -> None:
        desk.removed(Removal("logs", "a", "old", 3))
        raise MemoryError("too much")

    heard = Heard()
    clean(order(home_with(tmp_path)), heard, {"logs": Doing("logs", fail)})
    assert heard.visits == list(CLASSES)
    report = heard.reports["logs"]
    assert (report.failed, report.error) == (1, "MemoryError: too much")
    assert (report.removed, report.bytes) == (1, 3)
    assert heard.done == [None]


def test_a_class_removes_no_more_in_one_visit_than_it_may(tmp_path: Path) -> None:
    heard = Heard()
    made: dict[CleanClass, Cleaner] = {
        "logs": Doing("logs", remove_all),
        "events": Doing("events", remove_all),
    }
    clean(order(home_with(tmp_path), limits=CleanLimits(removals=7)), heard, made)
    assert [heard.reports[name].removed for name in made] == [7, 7]


def test_a_class_looks_at_no_more_in_one_visit_than_it_may(tmp_path: Path) -> None:
    heard = Heard()
    limited = order(home_with(tmp_path), limits=CleanLimits(scans=9))
    clean(limited, heard, {"logs": Doing("logs", remove_all)})
    assert heard.reports["logs"].scanned == 9


def test_a_run_begins_no_visit_after_its_time(tmp_path: Path) -> None:
    heard = Heard()
    clean(order(home_with(tmp_path), limits=CleanLimits(seconds=0.0)), heard, {})
    assert heard.visits == []
    assert heard.done == [None]


def test_a_class_goes_on_where_it_stopped(tmp_path: Path) -> None:
    class Kept(Heard):
        def ask(self, question: wire.Question) -> wire.Answer:
            super().ask(question)
            return wire.Answer(cursor="m")

    logs = Doing("logs", lambda _: None)
    clean(order(home_with(tmp_path), classes=("logs",)), Kept(), {"logs": logs})
    assert logs.cursors == ["m"]


def test_what_was_removed_is_written_down_with_its_reason(tmp_path: Path) -> None:
    def remove(desk: Desk) -> None:
        desk.removed(Removal("logs", "logs/\udcff", "it is old", 10))
        desk.skipped(Skip("logs", "logs/b", "it is young"))

    heard = Heard()
    clean(order(home_with(tmp_path)), heard, {"logs": Doing("logs", remove)})
    log = tmp_path / "removed.jsonl"
    [line] = log.read_text().splitlines()
    written = json.loads(line)
    assert written["what"] == "logs/\N{REPLACEMENT CHARACTER}"
    assert (written["class"], written["reason"], written["bytes"]) == (
        "logs",
        "it is old",
        10,
    )
    assert log.stat().st_mode & 0o777 == 0o600
    assert heard.reports["logs"].skipped == {"it is young": 1}


def test_a_planted_link_is_not_written_through(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (home / "removed.jsonl").symlink_to(victim)
    logs = Doing("logs", remove_all)
    clean(
        order(home_with(home), limits=CleanLimits(removals=1)), Heard(), {"logs": logs}
    )
    assert victim.read_text() == "mine"


def test_a_dry_run_tells_what_would_go_and_changes_nothing(tmp_path: Path) -> None:
    home = home_with(tmp_path, ("INSERT INTO history VALUES (1, x'5b5d')", ()))
    home_with(tmp_path, ("INSERT INTO history VALUES (9000000, x'5b5d')", ()))
    before = {path.name: path.read_bytes() for path in home.iterdir()}
    few = structs.replace(
        order(home, dry_run=True), rules={"events": {"count": 1_000_000}}
    )
    found = plan(few, 100)
    assert {path.name: path.read_bytes() for path in home.iterdir()} == before
    assert found.error is None
    assert [report.clean_class for report in found.reports] == list(CLASSES)
    assert "events" in {removal.clean_class for removal in found.removals}


def test_a_run_of_an_owner_that_was_superseded_removes_nothing(tmp_path: Path) -> None:
    insert = "INSERT INTO owner VALUES (1, 8, 'newer', 1, 1, 'b', 1, 'r', 1.0)"
    home = home_with(tmp_path, (insert, ()))
    logs = Doing("logs", remove_all)
    late = CleanOrder(order(home).request, claim=Claim("", "older", 1, 7))
    with pytest.raises(RunOver, match="WRITER_FENCED:cleanup:"):
        clean(late, Heard(), {"logs": logs})
    assert logs.cursors == []


def test_a_store_that_cannot_be_read_fails_the_run(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"no store of ours, but long enough" * 100)
    heard = Heard()
    clean(order(tmp_path), heard)
    [error] = heard.done
    assert error is not None
    assert "cannot be read" in error
