"""A worker within the test: from boundary to boundary, wherever it is cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.epic.admitted import NotAdmitted
from forge_actors.domain.epic.records import StopRequest
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.runtime.epic_effects import NotNow
from forge_actors.runtime.secrets import SecretFolder
from tests.acceptance.epic_worker_kit import CALM, INVOCATION, Bench, git
from tests.edges.github_kit import TOKEN
from tests.edges.github_kit import bench as github
from tests.runtime.agents_kit import agents  # noqa: F401 - a fixture

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.agents import FakeAgent

PHASES = ["implement", "check", "review"]
#: Where it is cut, in per cent of the steps of tasks that a whole run takes: how many
#: these are depends on the machine.
MOMENTS = (5, 30, 55, 80)


class Cut(trio.abc.Instrument):
    """Counts the steps of any task, and cancels a scope after so many."""

    def __init__(self, scope: trio.CancelScope, moment: int | None = None) -> None:
        self._scope = scope
        self._moment = moment
        self.steps = 0

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self._moment:
            self._scope.cancel()


async def steps_of(bench: Bench, moment: int | None = None) -> int:
    """The steps of a worker, which is cut after so many of them."""
    with trio.CancelScope() as scope:
        cut = Cut(scope, moment)
        trio.lowlevel.add_instrument(cut)
        try:
            await bench.work_here()
        finally:
            trio.lowlevel.remove_instrument(cut)
    return cut.steps


def working(place: Path) -> Bench:
    bench = Bench(place)
    bench.settings(implement="echo x >> work", check="true", review="true")
    return bench


async def test_wherever_a_worker_is_cut_the_next_one_goes_on_from_a_boundary(
    tmp_path: Path,
) -> None:
    cuts = set()
    whole = await steps_of(working(tmp_path / "whole"))
    for moment in MOMENTS:
        bench = working(tmp_path / str(moment))
        await steps_of(bench, whole * moment // 100)
        data = bench.saved()
        # What is saved is read strictly, so it is whole.
        cut_at = None if data is None else bench.state.phase
        cuts.add(cut_at)
        assert await bench.work_here() == 0
        state, traced = bench.state, bench.traced
        assert state.phase == "ready_for_merge", moment
        assert state.tries == dict.fromkeys(PHASES, 1)
        assert list(dict.fromkeys(traced)) == PHASES
        again = {phase for phase in PHASES if traced.count(phase) > 1}
        assert again <= {cut_at}, "what had ended is not done again"
        assert len(git(bench.worktree, "show", "HEAD:work").split()) <= 2
        assert git(bench.worktree, "status", "--porcelain") == ""
    assert len(cuts) > 1, "they are all cut at the same place"


async def test_it_stops_between_two_steps_and_goes_on_only_with_its_own_settings(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    for path, invocation in ((ours, INVOCATION), (theirs, "i-bbbbbbbbbb")):
        request = StopRequest(mode="drain", invocation_id=invocation)
        bench.namespaces.write_stop(7, request)
        [written] = bench.common.glob("forge-actors/epics/7/stop.json")
        written.rename(path)
    scripts = {
        "prepare": f"cp {theirs} {written}",
        "implement": f"cp {ours} {written}; echo EPIC_OUTCOME: passed",
        "check": "true",
    }
    bench.settings(**scripts)
    assert await bench.work_here() == 0
    assert (bench.traced, bench.state.phase) == (["prepare", "implement"], "check")
    written.write_text("no request at all")
    assert await bench.work_here() == 0
    assert bench.state.phase == "check", "what cannot be read is a stop, too"
    bench.namespaces.remove_stop(7)
    bench.settings(more="review_rounds = 9", **scripts)
    saved = bench.saved()
    with pytest.raises(NotAdmitted, match="--accept-config-change"):
        await bench.work_here()
    assert bench.saved() == saved
    assert await bench.work_here(accept_config_change=True) == 0
    assert bench.traced == ["prepare", "implement", "check"]
    assert bench.state.phase == "ready_for_merge"


async def test_a_phase_that_needs_a_person_settles_the_issue_as_blocked(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.settings(implement="echo which colour; echo EPIC_OUTCOME: blocked")
    assert await bench.work_here() == 0
    state = bench.state
    assert (state.phase, state.detail) == ("blocked", "implement: which colour")
    assert state.effects == []


async def test_an_agent_that_nobody_has_logged_in_leaves_the_issue_where_it_is(
    tmp_path: Path, agents: dict[str, FakeAgent]
) -> None:
    bench = Bench(tmp_path)
    lines = [CALM, "[epic.phases.implement]", "agent = 'claude'"]
    bench.config.write_text("\n".join(lines))
    agents["claude"].play("auth")
    with pytest.raises(NotNow, match="run the EPIC again"):
        await bench.work_here()
    assert (bench.state.phase, bench.state.setbacks) == ("implement", {})
    agents["claude"].play(file="done")
    assert await bench.work_here() == 0
    assert bench.state.phase == "ready_for_merge"
    assert git(bench.worktree, "show", "HEAD:done") == "made"


async def test_what_keeps_it_from_beginning_is_said_and_nothing_is_written(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    bench.settings(implement="true")
    with pytest.raises(NotAdmitted, match="invocation"):
        await bench.work_here(invocation_id="i-bbbbbbbbbb")
    git(bench.checkout, "branch", "forge/epic-7/issue-12")
    with pytest.raises(Refused, match="there is a branch"):
        await bench.work_here()
    bench.settings(check="true")
    with pytest.raises(InvalidInput, match="--agent NAME"):
        await bench.work_here()
    bench.config.unlink()
    with pytest.raises(NotAdmitted, match="no file of settings"):
        await bench.work_here()
    assert bench.saved() is None
    assert not bench.worktree.exists()


async def test_good_work_becomes_a_draft_pull_request_where_that_is_allowed(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bench = Bench(tmp_path)
    git(tmp_path, "init", "-q", "--bare", "remote.git")
    git(bench.checkout, "remote", "add", "origin", str(tmp_path / "remote.git"))
    bench.home.mkdir()
    SecretFolder(bench.home).write("PUBLISHES", TOKEN.encode())
    async with github() as there:
        there.server.routes.writable = True
        there.world.branches.add("forge/epic-7/issue-12")
        bench.settings(
            more="effects = ['push', 'pull_request']", implement="echo x > work"
        )
        with bench.config.open("a") as file:
            file.write(f"\n[github]\napi = '{there.server.base}'\n")
            file.write("[github.tokens]\n'github.com' = 'PUBLISHES'\n")
        assert await bench.work_here() == 0
        [made] = there.world.pulls
        methods = [each.method for each in there.troubles.log]
    assert (made.title, made.draft, made.base) == ("Say hello", True, "main")
    assert made.body == "Closes #12.\n"
    assert methods.count("POST") == 1
    assert bench.state.phase == "ready_for_merge"
    assert [each.state for each in bench.state.effects] == ["done", "done"]
    kept = b"".join(bench.files().values()).decode("utf-8", "replace")
    assert TOKEN not in kept + "".join(capfd.readouterr())


async def test_the_work_on_an_issue_of_a_plan_is_apart_from_that_on_others(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path, ("plans", "importer-1a2b3c4d"))
    bench.settings(more="effects = ['push', 'pull_request']", implement="true")
    with pytest.raises(InvalidInput, match="needs an EPIC of GitHub"):
        await bench.work_here()
    bench.settings(implement="echo x > work")
    assert await bench.work_here() == 0
    assert bench.state.phase == "ready_for_merge"
    assert bench.state.branch == "forge/epic-importer-1a2b3c4d/issue-12"
    place = "forge-actors/plans/importer-1a2b3c4d/worktrees/12"
    assert (bench.common / place / "work").read_text() == "x\n"
    assert not (bench.common / "forge-actors/issues").exists()
    assert not (bench.common / "forge-actors/worktrees").exists()
