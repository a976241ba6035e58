"""What runs of EPICs need a person for is in the inbox, with a service and without."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from msgspec import structs, to_builtins

from forge_actors.client import offline_inbox
from forge_actors.domain.epic.runs import EpicRequest, EpicRun, saved
from forge_actors.domain.epic.views import ChildView, EpicView
from forge_actors.domain.epic_changes import EpicSaved
from forge_actors.domain.errors import NotFound
from forge_actors.domain.policies import PolicyRequest
from forge_actors.testing.store_contract import repository
from tests.runtime.kit import running
from tests.runtime.test_restore import opened

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forge_actors.domain.epic.runs import EpicRun as Run
    from forge_actors.domain.inbox import Item

URL = "https://github.com/octo/demo/issues/"


def ended(key: str, number: int, reason: str | None, *children: ChildView) -> Run:
    view = EpicView("octo/demo", number, "The whole", "finished", children, {})
    view = structs.replace(view, reason="unavailable: no answer")
    return EpicRun(
        key,
        EpicRequest(f"{URL}{number}", "app"),
        *("repo", "cli", 5.0, "ended"),
        why=None if reason else "someone has it",
        reason=reason,
        ended=9.0,
        last=view,
    )


def issue(number: int, state: str, phase: str | None, reason: str) -> ChildView:
    title = f"Do <b>{number}</b>"
    return ChildView(number, title, state, reason, phase=phase, generation=2)


async def items(home: Path, *runs: Run | EpicSaved) -> Sequence[Item]:
    home.mkdir()
    async with opened(home) as store:
        changes = [
            each if isinstance(each, EpicSaved) else saved(each) for each in runs
        ]
        await store.save([repository(), *changes]).wait()
    async with running(home) as runtime:
        # What the runtime has found wrong as it began is durable behind this.
        await runtime.control.wait_epic("1a00")
        await runtime.pause()
        await runtime.resume()
        found = await runtime.control.inbox()
        await runtime.control.dismiss(found.items[0].id)
        assert len((await runtime.control.inbox()).items) == len(found.items) - 1
        served = to_builtins(await runtime.control.inbox())
    assert offline_inbox.items(str(home)) == served
    return found.items


async def test_issues_and_runs_that_need_somebody_are_told(tmp_path: Path) -> None:
    failed = structs.replace(
        issue(2, "held", "failed", "settled:failed"), job="1job", detail="no luck"
    )
    children = (
        issue(1, "done", "ready_for_merge", "settled:ready_for_merge"),
        failed,
        issue(3, "held", "implement", "uncertain: not ours"),
        issue(4, "held", "check", "held:resumable"),
        issue(5, "closed", "failed", "closed"),
        structs.replace(issue(6, "held", None, "held:uncertain"), closed="abandoned"),
    )
    found = await items(
        tmp_path / "home",
        ended("1a00", 7, "nothing-admissible", *children),
        ended("1b", 8, "degraded"),
        ended("1c", 9, None),
        ended("1d", 10, "drained"),
        ended("1e", 11, "degraded"),
        # The same EPIC was begun again since.
        ended("1f", 11, "stopped"),
    )
    assert [(each.id, each.kind) for each in found] == [
        ("epic:1c", "epic"),
        ("epic:1b", "epic"),
        ("epic:1a00:2.2", "epic"),
        ("epic:1a00:3.2", "epic"),
    ]
    assert found[0].says.endswith("ended early: someone has it")
    assert found[1].says.endswith("ended early: unavailable: no answer")
    name = found[0].repo
    assert f"forge-actors epic run --detach --repo {name} {URL}9" in found[0].actions
    assert found[2].says == "issue #2 of octo/demo has failed: no luck (Do <b>2</b>)"
    assert (found[2].job, found[2].evidence["run"]) == ("1job", "1a00")
    assert "forge-actors logs 1job" in found[2].actions
    assert "is uncertain: not ours" in found[3].says


async def test_a_run_that_cannot_be_read_is_set_aside(tmp_path: Path) -> None:
    broken = structs.replace(saved(ended("1a00", 7, "drained")), active=True, body=b"{")
    [item] = await items(tmp_path / "home", broken)
    assert "run 1a00 of an EPIC does not go on" in item.says


async def test_a_run_can_be_the_only_work_and_it_is_told_when_it_is_over(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    async with opened(home) as store:
        await store.save([repository(), saved(ended("1a00", 7, "drained"))]).wait()
    async with running(home) as runtime:
        wanted = PolicyRequest(mode="exclusive", work="1a00", reason="it first")
        view = await runtime.control.set_policy(wanted)
        assert (view.work, "has ended" in view.note) == ("1a00", True)
        with pytest.raises(NotFound, match="no workflow and no EPIC run"):
            await runtime.control.set_policy(structs.replace(wanted, work="2b00"))
