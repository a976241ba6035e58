"""The verb `timeline`: a chart, a page, a trace; served, and from a home at rest."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest
from msgspec import to_builtins

from forge_actors.cli import timeline
from forge_actors.cli.color import Painter
from forge_actors.cli.text import width
from forge_actors.cli.timeline_text import lines
from forge_actors.domain.timeline import (
    DEFAULT_SPAN,
    DEFAULT_SPANS,
    MAX_SPANS,
    TimelineQuery,
)
from forge_actors.testing.service import fake_service
from tests.domain.picture_kit import EMPTY, HOSTILE, Elements, example, run
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.timeline import Timeline
    from tests.cli.shell import Shell

PLAIN = Painter("never")


def chart(told: Timeline, columns: int = 80) -> list[str]:
    return lines(to_builtins(told), columns, PLAIN)


def test_its_numbers_are_those_of_the_domain() -> None:
    numbers = (timeline.SINCE, timeline.LIMIT, timeline.MOST)
    assert numbers == (DEFAULT_SPAN, DEFAULT_SPANS, MAX_SPANS)


def test_a_chart_has_a_row_for_each_that_ran_at_once() -> None:
    runs = [
        run("j1", 0, 1800, outcome="succeeded"),
        run("j2", 1800, 2700, outcome="failed"),
        run("j3", 2700, None),
    ]
    [top, axis, row, waiting, legend] = chart(
        example(runs=runs, repositories=["app"]), columns=9 + 2 + 80
    )
    assert top.startswith("2026-11-30 10:36:40 to now UTC")
    assert axis.split() == [
        *("|10:40", "|10:50", "|11:00", "|11:10", "|11:20", "|11:30")
    ]
    assert axis.index("|11:00") == 11 + round(1400 / 3600 * 79)
    assert row == "app        " + "=" * 40 + "x" * 20 + ">" * 20
    assert waiting == "  waiting  " + "1" * 40 + "2" * 20 + "+" * 20
    assert legend.startswith("= succeeded   > running   x failed   1 to 9, +")


def test_what_ended_badly_is_seen_where_much_ran() -> None:
    runs = [run(f"j{n}", n, n + 1, outcome="succeeded") for n in range(100)]
    runs[50] = run("j50", 50, 51, outcome="failed")
    row = chart(example(runs=runs, repositories=["app"], depths=[]))[2]
    assert row.split()[1].startswith("x=-")


@pytest.mark.parametrize("columns", [20, 40, 80, 200])
@pytest.mark.parametrize("told", [example(), example(HOSTILE), EMPTY])
def test_a_chart_fits_and_stays_a_chart(told: Timeline, columns: int) -> None:
    for line in chart(told, columns):
        assert line.isprintable()
        # It is never narrower than 20, and has a name beside it.
        assert width(line) <= max(columns, 20 + 2 + 20)


def test_many_rows_are_bounded() -> None:
    runs = [run(f"j{n}", 0, None) for n in range(40)]
    many = [
        type(each)(**{**to_builtins(each), "lane": n, "tokens": ()})
        for n, each in enumerate(runs)
    ]
    shown = chart(example(runs=many, repositories=["app"]))
    assert "(24 rows more)" in "\n".join(shown)
    assert len(shown) < 24


async def test_a_page_and_a_trace_are_written_for_their_owner_alone(
    tmp_path: Path, shell: Shell
) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    page.write_text("x" * 1_000_000)
    async with fake_service(tmp_path) as control:
        control.timeline_told = example()
        status, out, err = await shell(
            *("timeline", "--html", str(page), "--trace", str(trace)),
            *("--since", "8h", "--until", "1h", "--repo", "app", "--limit", "5"),
        )
        assert (status, out) == (0, "")
        assert err.count("written to") == 2
        asked = TimelineQuery("8h", "1h", ("app",), 5)
        assert control.timeline_queries == [asked]
    assert "exit code 7" in Elements(page.read_text()).text
    assert json.loads(trace.read_text())["traceEvents"]
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600


async def test_json_and_the_output(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.timeline_told = example()
        _, out, _ = await shell("timeline", "--json")
        assert json.loads(out) == json.loads(json.dumps(to_builtins(example())))
        _, out, _ = await shell("timeline", "--html", "-")
        assert out.startswith("<!DOCTYPE html>")
        _, out, _ = await shell("timeline", "--trace", "-")
        assert json.loads(out)["displayTimeUnit"] == "ms"
        _, out, _ = await shell("timeline", "--color", "never")
        assert out.splitlines() == chart(example())


@pytest.mark.parametrize(
    "words",
    [
        ("--limit", "0"),
        ("--limit", "20001"),
        ("--html", "-", "--trace", "-"),
        ("--json", "--html", "-"),
    ],
)
def test_what_makes_no_sense_is_a_usage_error(
    shell: Shell, words: tuple[str, ...]
) -> None:
    status, out, err = shell.now("timeline", *words)
    assert (status, out) == (2, "")
    assert "forge-actors: " in err or '"USAGE"' in err


async def test_a_file_that_cannot_be_written_is_named(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        place = os.path.join(str(tmp_path), "nowhere", "x.html")
        status, _, err = await shell("timeline", "--html", place)
    assert status == 1
    assert place in err


async def test_a_home_at_rest_tells_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from tests.cli.shell import Shell

    shell = Shell(tmp_path / "home", capsys)
    async with controlled(tmp_path) as case:
        job = await case.submit(name="lint")
        await case.control.wait([job])
        served = await case.control.timeline(TimelineQuery())
    status, out, err = await shell("timeline", "--json", "--repo", "app")
    assert status == 0
    assert "this is what its store holds" in err
    [run] = json.loads(out)["runs"]
    assert (run["job"], run["name"], run["outcome"]) == (job, "lint", "succeeded")
    assert run["tokens"] == list(served.runs[0].tokens)
    status, _, err = await shell("timeline", "--since", "tomorrow")
    assert status == 2
    assert "since" in err
