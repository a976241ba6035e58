"""The log of a service: one line an event, harmless, and never too much of it."""

from __future__ import annotations

import json
import logging
import os
import stat
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime import service_log
from forge_actors.runtime.log_settings import LogSettings
from forge_actors.runtime.settings import settings_from

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "ghp_" + "a1B2" * 9
HOSTILE = f"a\nb\r\x1b[31mc\u202ed\u2028e\udcffé {SECRET}"


class Place:
    """A log file, which two descriptors are pointed at in place of our own."""

    def __init__(self, folder: Path, outputs: tuple[int, int]) -> None:
        self.path = folder / "service.log"
        self.outputs = outputs

    def log(self, **settings: Any) -> logging.Logger:
        settings = {"max_bytes": 64 * 1024, **settings}
        handler = service_log.ServiceLog(LogSettings(**settings), self.path)
        # One of its own: nothing of it stays with the other tests.
        logger = logging.Logger("forge_actors.test", logging.DEBUG)  # noqa: LOG001
        logger.addHandler(handler)
        return logger

    def lines(self) -> list[str]:
        return self.path.read_text("utf-8").splitlines()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    first = os.open(tmp_path / "service.log", flags, 0o600)
    outputs = first, os.dup(first)
    monkeypatch.setattr(service_log, "_OUTPUTS", outputs)
    yield Place(tmp_path, outputs)
    for output in outputs:
        os.close(output)


def fail(logger: logging.Logger) -> None:
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        logger.exception("it failed: %s", HOSTILE)


def test_an_event_is_one_line_that_does_nothing_to_a_terminal(place: Place) -> None:
    fail(place.log())
    [line] = place.lines()
    assert line.isprintable()
    assert SECRET not in line
    assert r"a\nb\r\u001b[31mc\u202ed\u2028e\udcffé" in line
    at, level, name, rest = line.split(" ", 3)
    assert (at[10], at[-1], level, name) == ("T", "Z", "ERROR", "forge_actors.test:")
    assert "Traceback" in rest
    assert r"\nValueError: a" in rest


def test_for_programs_it_is_an_object(place: Place) -> None:
    logger = place.log(format="json")
    fail(logger)
    logger.info("%s jobs", 3)
    text = place.path.read_text()
    assert text.isascii()
    assert SECRET not in text
    one, two = map(json.loads, text.splitlines())
    assert set(one) == {"at", "level", "logger", "message", "trace"}
    assert one["message"].startswith("it failed: a\nb")
    assert one["trace"].splitlines()[0].startswith("Traceback")
    assert (two["level"], two["message"]) == ("info", "3 jobs")
    assert "trace" not in two


def test_what_is_below_the_level_is_not_said(place: Place) -> None:
    logger = place.log(level="warning")
    logger.info("nobody asks")
    logger.warning("look")
    assert [line.rpartition(" ")[2] for line in place.lines()] == ["look"]


def test_a_long_event_is_cut(place: Place) -> None:
    place.log().info("x" * 10**6)
    [line] = place.lines()
    assert len(line) < service_log.MAX_EVENT + 100


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_the_file_begins_anew_and_so_many_old_ones_are_kept(
    place: Place, kept: int
) -> None:
    logger = place.log(kept=kept)
    for number in range(100):
        logger.info("%03d %s", number, "x" * 8000)
    names = sorted(path.name for path in place.path.parent.iterdir())
    wanted = ["service.log", *(f"service.log.{n + 1}" for n in range(kept))]
    assert names == wanted
    found = []
    for name in reversed(wanted):
        file = place.path.with_name(name)
        assert file.stat().st_size < 64 * 1024 + 9000
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        found += [int(line.split()[3]) for line in file.read_text().splitlines()]
    # The last ones, in their order, and none of them missing.
    assert found == list(range(100 - len(found), 100))
    # What Python says when it dies is said to the same file.
    for output in place.outputs:
        assert os.fstat(output).st_ino == place.path.stat().st_ino


def test_a_file_that_was_moved_away_is_written_to_no_more(place: Place) -> None:
    logger = place.log()
    logger.info("one")
    place.path.rename(place.path.with_suffix(".old"))
    logger.info("two")
    assert [line.rpartition(" ")[2] for line in place.lines()] == ["two"]


def test_a_hang_up_has_the_file_made_again(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    logger = place.log()
    monkeypatch.setattr(logging.getLogger(), "handlers", logger.handlers)
    place.path.unlink()
    service_log.reopen()
    assert place.path.stat().st_size == 0
    assert os.fstat(place.outputs[0]).st_ino == place.path.stat().st_ino


def test_an_event_that_cannot_be_shown_fails_nobody(place: Place) -> None:
    place.log().info("%d", "no number")
    [line] = place.lines()
    assert line == "forge_actors.test: an event cannot be shown: TypeError"


def test_where_nothing_can_be_written_nobody_fails(place: Place) -> None:
    logger = place.log()
    place.path.unlink()
    place.path.mkdir()  # it cannot be opened again
    logger.info("one")
    assert os.fstat(place.outputs[1]).st_size > 0  # the old one still takes it


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ({"format": "xml"}, "log.format"),
        ({"level": "loud"}, "log.level"),
        ({"max_bytes": "1K"}, "log.max_bytes"),
        ({"kept": 10}, "log.kept"),
    ],
)
def test_a_wrong_setting_is_refused(table: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput, match=field):
        settings_from({"log": table})
