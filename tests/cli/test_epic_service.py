"""`epic` and the runs of a service."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs

from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.epic.runs import EpicRunView
    from forge_actors.testing.control import FakeControl
    from tests.cli.shell import Shell

URL = "https://github.com/octo/demo/issues/7"
CHILDREN = (
    ChildView(8, "First", "running", "owned", phase="check", job="1job"),
    ChildView(9, "Then \x1b[31m", "blocked", "blocked:#8", blocked_by=(8,)),
)
SEEN = EpicView(
    *("octo/demo", 7, "The whole", "running", CHILDREN),
    {"running": 1, "blocked": 1},
)


def change(control: FakeControl, run: str, **fields: Any) -> None:
    control.kept_epics[run] = structs.replace(control.kept_epics[run], **fields)


async def test_a_run_is_handed_to_the_service(tmp_path: Path, shell: Shell) -> None:
    plan = tmp_path / "plan.toml"
    plan.touch()
    async with fake_service(tmp_path) as control:
        status, out, _ = await shell(
            *("epic", "run", URL, "--detach", "--repo", "demo", "--agent", "claude"),
            *("--max-parallel", "2", "--request-id", "once"),
        )
        assert (status, out.strip()) == (0, "1epic1")
        status, out, _ = await shell(
            *("epic", "resume", str(plan), "--detach", "--checkout", str(tmp_path)),
            *("--force", "--json"),
        )
        assert (status, json.loads(out)["id"]) == (0, "1epic2")
        first, second = control.epic_requests
        assert (first.epic, first.repo, first.agent) == (URL, "demo", "claude")
        assert (first.max_parallel, first.request_id) == (2, "once")
        assert (first.resume, first.force) == (False, False)
        assert (second.epic, second.repo) == (str(plan), str(tmp_path))
        assert (second.resume, second.force) == (True, True)
        for wrong in (("--detach", "--config", "x"), ("--repo", "demo")):
            status, _, err = await shell("epic", "run", URL, *wrong)
            assert (status, "--" in err) == (2, True)


async def test_runs_are_listed_shown_drawn_stopped_and_waited_for(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        for _ in range(2):
            await shell("epic", "run", URL, "--detach", "--repo", "demo")
        change(control, "1epic1", view=SEEN)
        change(control, "1epic2", state="ended", reason="degraded", why="no answer")
        status, out, _ = await shell("epic", "list")
        assert status == 0
        head, newest, oldest = out.splitlines()
        assert head.split() == ["RUN", "REPO", "STATE", "ISSUES", "EPIC", "NOTE"]
        assert ("degraded" in newest, "no answer" in newest) == (True, True)
        assert "1 running, 1 blocked" in re.sub(" +", " ", oldest)
        _, out, _ = await shell("epic", "list", "--active", "--json")
        assert [run["id"] for run in json.loads(out)] == ["1epic1"]
        _, out, _ = await shell("epic", "status", "1epic1")
        for told in ("run       1epic1 running", "in demo", "#8", "1job", "The whole"):
            assert told in out
        assert "\x1b" not in out
        _, out, _ = await shell("epic", "status", "1epic1", "--svg", "-")
        assert out.startswith("<svg")
        _, _, err = await shell("epic", "stop", "1epic1", "--now", "--follow")
        assert "asked to stop (now)" in err
        assert control.epic_stops == [("1epic1", "now")]
        status, _, err = await shell("epic", "stop", "1epic2")
        assert (status, "has ended" in err) == (3, True)
        for reason, exits in (("degraded", 1), ("drained", 0), ("stopped", 130)):
            change(control, "1epic2", reason=reason)
            status, out, _ = await shell("epic", "wait", "1epic2")
            assert (status, f"ended: {reason}" in out) == (exits, True)


async def test_a_run_is_watched_until_it_has_ended(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control, trio.open_nursery() as nursery:
        await shell("epic", "run", URL, "--detach", "--repo", "demo")
        control.emit("epic_ended", epic="1epic1")  # of before
        asked, found = trio.Event(), control.epic

        async def epic(name: str) -> EpicRunView:
            asked.set()
            return await found(name)

        control.epic = epic  # type: ignore[method-assign]
        printed: list[str] = []

        async def watch() -> None:
            status, out, _ = await shell("epic", "status", "1epic1", "--watch")
            printed.append(out)
            assert status == 0

        nursery.start_soon(watch)
        await asked.wait()
        control.emit("epic_ended", epic="another")
        change(control, "1epic1", state="ended", reason="drained")
        control.emit("epic_ended", epic="1epic1")
    [first, last] = printed[0].strip().split("\n\n")
    assert first.startswith("run       1epic1 running")
    assert last.startswith("run       1epic1 ended: drained")
