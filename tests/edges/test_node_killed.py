"""Services and agents killed at any moment: each attempt ran once, or never."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.edges.node import agent_lock
from forge_actors.edges.node.finding import read_card
from tests.edges.node_jobs import ROOT, named, opened, owner

if TYPE_CHECKING:
    from forge_actors.domain.launch import Receipt

JOBS = 24

SERVICE = """
import os, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.edges.node_jobs import open_launcher, owner, shell
home, epoch, jobs = Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
async def main():
    async with open_launcher(home, owner=owner(epoch), durable=True) as launcher:
        for number in range(jobs):
            name = f"{epoch}-{number}"
            wanted = shell(home, f"echo {name} >> ran; exit 3", job=name)
            attempt = launcher.launch(wanted)
            if number % 7 == 3:
                await attempt.exited()
            os.write(1, b".")
        await trio.sleep_forever()
trio.run(main)
"""


async def kill_after(home: Path, epoch: int, launches: int, *, agent: bool) -> None:
    """Let a service launch its jobs; kill it, and its agent, after so many."""
    arguments = [str(ROOT), str(home), str(epoch), str(JOBS)]
    service = await trio.lowlevel.open_process(
        [sys.executable, "-c", SERVICE, *arguments], stdout=subprocess.PIPE
    )
    seen = 0
    async with service.stdout as output:  # type: ignore[union-attr]
        while seen < launches:
            seen += len(await output.receive_some(launches - seen))
        card = read_card(home)
        service.kill()
        if agent:
            assert card is not None
            os.kill(card.pid, signal.SIGKILL)
        await service.wait()


@pytest.mark.parametrize("agent", [False, True], ids=["service", "agent too"])
async def test_no_attempt_runs_twice_and_none_that_ran_is_denied(
    durable_home: Path, agent: bool
) -> None:
    home = durable_home
    receipts: dict[str, Receipt] = {}
    denied: set[str] = set()
    for epoch, launches in enumerate([1, 10, JOBS], start=1):
        await kill_after(home, 2 * epoch, launches, agent=agent)
        names = [f"{2 * epoch}-{number}" for number in range(JOBS)]
        reserved = {(named(home, name), 1): None for name in names}
        async with opened(home, owner=owner(2 * epoch + 1), durable=True) as launcher:
            await launcher.reconcile(reserved, same_boot=True)
            for name in names:
                attempt = launcher.adopt(named(home, name), 1)
                if attempt is None:
                    denied.add(name)
                else:
                    receipts[name] = await attempt.exited()
                    launcher.forget(named(home, name), 1)
        await agent_lock.wait_for_end(home)
        assert list((home / "receipts").glob("*.jsonl")) == []
    ran = Counter((home / "ran").read_text().split())
    assert set(ran.values()) == {1}
    assert not ran.keys() & denied
    for name, receipt in receipts.items():
        if receipt.ending == "exit":
            assert (receipt.exit_code, ran[name]) == (3, 1)
        else:
            assert receipt.ending == "lost"
            assert agent
    endings = Counter(receipt.ending for receipt in receipts.values())
    assert endings["exit"] > 0
    assert len(denied) > 0
