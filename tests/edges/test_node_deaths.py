"""The ends of the service and of the agent: nothing runs on, nothing is forgotten."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio
import trio.testing

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node import adoption, agent_lock, finding, wire
from forge_actors.edges.node.agent_process import AgentProcess
from forge_actors.edges.node.launcher import (
    Attempt,
    open_launcher,
)
from tests.edges.node_jobs import (
    DOUBLE_FORK,
    ROOT,
    adopted,
    named,
    opened,
    order,
    read_receipts,
    shell,
    survivors,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from forge_actors.domain.launch import ProcessIdentity

    Lost = Mapping[tuple[str, int], ProcessIdentity | None]
    Agents = Mapping[tuple[str, int], str]
    Lasting = AbstractSet[tuple[str, int]]
    Remaining = dict[tuple[str, int], tuple[ProcessIdentity, ...]]

OWNER = """
import os, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.edges.node_jobs import named, open_launcher, shell
async def main():
    home = Path(sys.argv[2])
    async with open_launcher(home) as launcher:
        script = f'trap "" TERM; echo; sleep {sys.argv[3]}'
        launcher.launch(shell(home, script, grace=0.5))
        launcher.launch(shell(home, f"setsid sleep {sys.argv[3]} & wait", job="calm"))
        await launcher.wait_output(named(home), 1, 0)
        os.write(1, b"ready")
        await trio.sleep_forever()
trio.run(main)
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
async def test_when_the_owner_dies_everything_is_ended_and_written_down(
    home: Path, lasting: str, number: signal.Signals
) -> None:
    owner = await trio.lowlevel.open_process(
        [sys.executable, "-c", OWNER, str(ROOT), str(home), lasting],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    async with owner.stdout as output:  # type: ignore[union-attr]
        assert await output.receive_some() == b"ready"
        owner.send_signal(number)
        await owner.wait()
    await agent_lock.wait_for_end(home)
    (journal,) = (home / "receipts").iterdir()
    found = {receipt.job: receipt for receipt in read_receipts(journal)}
    assert not survivors(lasting)
    assert {job: receipt.ending for job, receipt in found.items()} == {
        named(home): "owner",
        named(home, "calm"): "owner",
    }
    assert found[named(home)].forced
    assert not found[named(home, "calm")].forced
    async with opened(home) as launcher:
        await launcher.reconcile({(job, 1): None for job in found}, same_boot=True)
        for job, receipt in found.items():
            assert await adopted(launcher, job).exited() == receipt
            launcher.forget(job, 1)
    assert list((home / "receipts").glob("*.jsonl")) == []


async def test_leaving_ends_what_runs_and_tells_of_it(home: Path, lasting: str) -> None:
    async with opened(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", lasting))
        await attempt.started()
    assert (await attempt.exited()).ending == "owner"
    assert not survivors(lasting)
    with pytest.raises(ProcessLookupError):
        os.kill(launcher.agent_pid, 0)


async def test_cancelling_leaves_nothing_behind(home: Path, lasting: str) -> None:
    with trio.CancelScope() as scope:
        async with open_launcher(home) as launcher:
            attempt = launcher.launch(order(home, "sleep", lasting))
            await attempt.started()
            scope.cancel()
            await trio.sleep_forever()
    assert (await attempt.exited()).ending == "owner"
    assert not survivors(lasting)


async def test_when_the_agent_is_killed_its_jobs_are_lost_and_a_new_one_starts(
    home: Path, lasting: str
) -> None:
    daemon = [sys.executable, "-c", DOUBLE_FORK, lasting]
    async with open_launcher(home) as launcher:
        calm = launcher.launch(order(home, "sleep", lasting, job="calm"))
        script = f"{shlex.join(daemon)}; sleep 60"
        wild = launcher.launch(shell(home, script, job="wild"))
        await launcher.wait_output(wild.key[0], 1, 0)
        first = launcher.agent_pid
        os.kill(first, signal.SIGKILL)
        for attempt in (calm, wild):
            receipt = await attempt.exited()
            assert receipt.ending == "lost"
            assert receipt.exit_code is None
            assert receipt.identity == attempt.identity
        assert not survivors(lasting)
        again = launcher.launch(order(home, "true", job="again"))
        assert (await again.exited()).exit_code == 0
        assert launcher.agent_pid != first


async def test_a_receipt_that_only_the_dead_agent_knew_is_not_lost(home: Path) -> None:
    os.mkfifo(home / "fifo")
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(shell(home, "read -r < fifo; exit 3"))
        await attempt.started()
        agent = launcher._agent
        (home / "fifo").write_text("\n")
        # Nobody else runs meanwhile, so the launcher hears nothing of all this; and
        # what the agent has sent is taken away, as if it had died before sending.
        while b'"ending"' not in agent.journal.read_bytes():
            os.sched_yield()
        os.kill(agent.pid, signal.SIGKILL)
        ended = os.WEXITED | os.WNOWAIT
        os.waitid(os.P_PID, agent.pid, ended)  # noqa: ASYNC222 - see above
        with contextlib.suppress(BlockingIOError, ConnectionResetError):
            agent.socket.recv(1 << 16)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.exit_code) == ("exit", 3)


@pytest.mark.parametrize(
    ("end", "changes", "ending", "code"),
    [
        ("exit 0", {}, "exit", 0),
        ("exit 3", {}, "exit", 3),
        ("exit 3", {"after_job": "touch ran"}, "exit", 3),
        ("sleep 60", {"wall": 1.0}, "wall", None),
    ],
    ids=["success", "failure", "before its last command", "time budget"],
)
async def test_what_a_job_came_to_stands_when_the_agent_dies_with_its_leftovers(
    home: Path,
    lasting: str,
    end: str,
    changes: dict[str, Any],
    ending: str,
    code: int | None,
) -> None:
    """The leader has ended, something it started has not: neither is lost."""
    # Deaf from its first moment: a signal may come before it does anything itself.
    deaf = f"trap '' TERM; (while :; do sleep {lasting}; done) & trap - TERM; echo out"
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(shell(home, f"{deaf}; {end}", **changes))
        identity = await attempt.started()
        agent = launcher._agent
        while b'"unfinished"' not in agent.journal.read_bytes():
            await trio.lowlevel.checkpoint()
        os.kill(agent.pid, signal.SIGKILL)
        receipt = await attempt.exited()
    assert (receipt.ending, receipt.exit_code) == (ending, code)
    assert (receipt.complete, receipt.remaining) == (True, ())
    assert receipt.identity == identity
    assert not survivors(lasting)
    assert (home / "job.stdout").read_bytes().endswith(b"out\n")
    if changes.get("after_job"):
        assert receipt.after_job is not None
        assert receipt.after_job.error == "the node agent ended before it could begin"
        assert not (home / "ran").exists()


async def test_an_agent_that_keeps_dying_is_given_up(home: Path) -> None:
    async with open_launcher(home) as launcher:
        for number in range(5):
            attempt = launcher.launch(order(home, "sleep", "60", job=f"{number}"))
            await attempt.started()
            os.kill(launcher.agent_pid, signal.SIGKILL)
            assert (await attempt.exited()).ending == "lost"
        with pytest.raises(LauncherDown, match="times within a minute"):
            launcher.launch(order(home, "true", job="next"))


async def test_what_is_launched_between_two_agents_waits_for_the_next(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_launcher(home) as launcher:
        between: list[Attempt] = []
        real = adoption.sweep

        async def sweep_and_launch(
            lost: Lost, agents: Agents, lasting: Lasting
        ) -> Remaining:
            wanted = order(home, "true", job=f"between-{len(between)}")
            between.append(launcher.launch(wanted))
            return await real(lost, agents, lasting)

        monkeypatch.setattr(adoption, "sweep", sweep_and_launch)
        for number in range(5):
            attempt = launcher.launch(order(home, "sleep", "60", job=f"{number}"))
            await attempt.started()
            os.kill(launcher.agent_pid, signal.SIGKILL)
            assert (await attempt.exited()).ending == "lost"
            ending = "exit" if number < 4 else "stop"
            assert (await between[number].exited()).ending == ending


async def test_a_home_has_one_agent(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finding, "END_LIMIT", 0.05)
    async with opened(home):
        with pytest.raises(LauncherDown, match="still ends jobs"):
            async with open_launcher(home):
                pass
        with pytest.raises(LauncherDown, match="ended at its start"):
            await AgentProcess.start(home, wire.hello({}))
        assert "another node agent" in (home / "agent.log").read_text()
        (home / "agent.log").write_text("")


async def test_interrupts_do_not_end_the_agent(home: Path) -> None:
    async with opened(home) as launcher:
        pid = launcher.agent_pid
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGHUP)
        assert (await launcher.launch(order(home, "true")).exited()).exit_code == 0
        assert launcher.agent_pid == pid


async def test_sigterm_to_the_agent_ends_its_jobs(home: Path, lasting: str) -> None:
    async with open_launcher(home) as launcher:
        attempt = launcher.launch(order(home, "sleep", lasting))
        await attempt.started()
        os.kill(launcher.agent_pid, signal.SIGTERM)
        assert (await attempt.exited()).ending == "owner"
        assert not survivors(lasting)
