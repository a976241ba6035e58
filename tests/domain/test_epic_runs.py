"""Runs of EPICs by a service: as they are saved, told and shown."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from forge_actors.domain.epic.runs import (
    EpicRequest,
    EpicRun,
    EpicRunView,
    UnreadableEpic,
    attention,
    epic_event,
    loaded,
    saved,
    set_aside,
    shown,
    unreadable,
)
from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.domain.epic_changes import EpicSaved
from forge_actors.domain.picture import epic as pictures

URL = "https://github.com/octo/demo/issues/7"
HELD = ChildView(3, "A thing", "held", "held:resumable", phase="failed")


def run(*children: ChildView, **fields: Any) -> EpicRun:
    request = EpicRequest(URL, "app", request_id="once")
    view = EpicView("octo/demo", 7, "All", "running", children, {"held": 1})
    known = {"last": view if children else None, **fields}
    return EpicRun("e1", request, "r1", "cli", 1000.0, **known)


def test_a_run_is_read_as_it_was_saved() -> None:
    one = run(HELD)
    assert loaded(saved(one).body) == one
    for broken in (b"{", b"[]", b"\xff", b"[" * 100_000):
        with pytest.raises(UnreadableEpic, match="what is stored of it"):
            loaded(broken)


def test_it_is_found_by_what_it_is_about_and_whether_it_goes_on() -> None:
    one = run()
    event = epic_event("epic_began", one, 5.0)
    assert saved(one, event) == EpicSaved(
        epic="e1",
        active=True,
        body=msgspec.json.encode(one),
        request="once",
        target=f"r1 {URL}",
        needs=False,
        event=event,
    )
    assert saved(one).event is None
    assert saved(run(state="waiting")).active
    assert not saved(run(state="ended", reason="drained")).active


@pytest.mark.parametrize(
    ("fields", "needs"),
    [
        ({"state": "ended", "reason": "drained"}, False),
        ({"state": "ended", "reason": "degraded"}, True),
        ({"state": "ended", "reason": None}, True),
        ({"state": "running", "reason": None}, False),
    ],
)
def test_somebody_has_to_look_at_one_that_ended_before_its_time(
    fields: dict[str, Any], needs: bool
) -> None:
    assert run(**fields).failed is needs
    assert saved(run(**fields)).needs is needs
    assert saved(run(HELD, **fields)).needs


@pytest.mark.parametrize(
    ("fields", "stuck"),
    [
        ({"phase": "blocked"}, True),
        ({"phase": "failed"}, True),
        ({"phase": "review"}, False),
        ({}, False),
        ({"phase": "failed", "state": "done"}, False),
        ({"reason": "uncertain: why"}, True),
        ({"reason": "uncertain: why", "closed": "abandoned"}, False),
    ],
)
def test_issues_that_nothing_saves_by_itself_need_somebody(
    fields: dict[str, Any], stuck: bool
) -> None:
    known = {"state": "held", "reason": "held:x", **fields}
    child = ChildView(3, "A thing", **known)
    assert attention(run(child)) == ([child] if stuck else [])
    assert attention(run()) == []


def test_what_cannot_be_read_stands_for_itself_and_waits() -> None:
    one = unreadable("e1", "it is none")
    assert (one.id, one.repo, one.origin, one.made) == ("e1", "", "", 0.0)
    assert (one.request.epic, one.request.repo) == ("", "")
    assert (one.state, one.why, one.reason) == ("ended", "it is none", None)
    assert set_aside("e1", b"{") == EpicSaved(
        "e1", False, b"{", request=None, target="", needs=True, event=None
    )


def test_a_run_is_shown_with_what_was_seen_last() -> None:
    one = run(HELD, why="it waits")
    view = shown(one, "app")
    assert view == EpicRunView(
        id="e1",
        epic=URL,
        repo="app",
        state="running",
        why="it waits",
        reason=None,
        origin="cli",
        made_at="1970-01-01T00:16:40.000Z",
        ended_at=None,
        view=one.last,
    )
    ended = shown(run(state="ended", reason="drained", ended=1001.0), "app")
    assert (ended.state, ended.reason) == ("ended", "drained")
    assert ended.ended_at == "1970-01-01T00:16:41.000Z"
    assert ended.view is None
    brief = shown(one, "app", brief=True)
    assert brief.view is not None
    assert (brief.view.children, brief.view.counts) == ((), {"held": 1})
    now = EpicView("octo/demo", 7, "Now", "running", (), {})
    assert shown(one, "app", now).view == now
    assert shown(run(), "app", brief=True).view is None


def test_an_event_tells_only_what_is_known() -> None:
    event = epic_event("epic_ended", run(), 5.0, reason="drained", why=None)
    assert (event.kind, event.at, event.repo) == ("epic_ended", 5.0, "r1")
    assert event.data == {"epic": "e1", "target": URL, "reason": "drained"}


def test_the_issues_of_an_epic_are_drawn_behind_what_they_wait_for() -> None:
    children = (
        ChildView(1, "First", "running", "running", phase="check"),
        ChildView(2, "", "blocked", "blocked:#1", (1,), phase="prepare"),
        ChildView(3, "Third", "ready", "ready"),
    )
    view = EpicView("octo/demo", 7, "All", "running", children, {})
    lines = list(pictures.lines(view))
    assert any("#1 First" in line and "check" in line for line in lines)
    [second] = [line for line in lines if "blocked:#1, prepare" in line]
    assert "#2" in second
    [third] = [line for line in lines if "#3 Third" in line]
    assert "ready," not in third
    assert [n for n, line in enumerate(lines) if "#1 First" in line] < [
        n for n, line in enumerate(lines) if line == second
    ]
    picture = pictures.picture(view)
    assert picture.startswith("<svg")
    assert "EPIC #7 of octo/demo" in picture
    assert "#1 First" in picture
