"""An agent that outlives its service: found, adopted, and ended only when asked."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
import trio.lowlevel

from forge_actors.domain.errors import LauncherDown
from forge_actors.edges.node import agent_lock, finding, journals
from forge_actors.edges.node.finding import read_card
from forge_actors.edges.node.launcher import open_launcher
from tests.edges.node_jobs import (
    ROOT,
    adopted,
    named,
    opened,
    order,
    owner,
    survivors,
)

if TYPE_CHECKING:
    pass

SERVICE = """
import os, sys, trio
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from tests.edges.node_jobs import named, open_launcher, order, owner, shell
home, lasting = Path(sys.argv[2]), sys.argv[3]
async def main():
    async with open_launcher(home, owner=owner(1), durable=True) as launcher:
        for script, changes in [
            ("echo begun; read -r < fifo; echo went on; exit 3", dict(job="ends")),
            (f"echo begun; sleep {lasting}", dict(job="wall", wall=0.5)),
            (f"echo begun; sleep {lasting}", dict(job="idle", idle=0.4)),
            (f"echo begun; sleep {lasting}", dict(job="lives")),
        ]:
            launcher.launch(shell(home, script, **changes))
            await launcher.wait_output(named(home, changes["job"]), 1, 0)
        os.write(1, b"ready")
        await trio.sleep_forever()
trio.run(main)
"""


async def killed_service(home: Path, lasting: str) -> None:
    """Let a service start four jobs, and kill it."""
    os.mkfifo(home / "fifo")
    service = await trio.lowlevel.open_process(
        [sys.executable, "-c", SERVICE, str(ROOT), str(home), lasting],
        stdout=subprocess.PIPE,
    )
    async with service.stdout as output:  # type: ignore[union-attr]
        assert await output.receive_some() == b"ready"
        service.kill()
        await service.wait()


def keys(home: Path, *jobs: str) -> dict[tuple[str, int], None]:
    return dict.fromkeys((named(home, job), 1) for job in jobs)


async def test_jobs_go_on_when_the_service_is_killed_and_are_adopted_by_the_next(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    await killed_service(home, lasting)
    await trio.to_thread.run_sync((home / "fifo").write_text, "\n")
    log = home / "ends.stdout"
    while "went on" not in log.read_text():
        os.sched_yield()
    reserved = keys(home, "ends", "wall", "idle", "lives")
    async with opened(home, owner=owner(2), durable=True) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        ends, wall, idle, lives = (adopted(launcher, *key) for key in reserved)
        receipt = await ends.exited()
        assert (receipt.ending, receipt.exit_code) == ("exit", 3)
        assert (receipt.instance, receipt.release) == ("instance-1", "r1")
        assert receipt.stdout_bytes == len("begun\nwent on\n")
        assert (await wall.exited()).ending == "wall"
        assert (await idle.exited()).ending == "idle"
        identity = await lives.started()
        assert identity is not None
        assert Path(f"/proc/{identity.pid}").exists()
        assert len(survivors(lasting)) > 0
        lives.stop()
        receipt = await lives.exited()
        assert (receipt.ending, receipt.identity) == ("stop", identity)
        for key in reserved:
            launcher.forget(*key)
    await agent_lock.wait_for_end(home)
    assert not survivors(lasting)
    assert list((home / "receipts").glob("*.jsonl")) == []
    assert read_card(home) is None


async def test_budgets_hold_while_no_service_is_there(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    await killed_service(home, lasting)
    pending = {"wall", "idle"}
    while pending:  # until the agent has written down that they ended
        for path in (home / "receipts").iterdir():
            pending -= {
                job for job in pending if f'"ending":"{job}"' in path.read_text()
            }
        os.sched_yield()
    os.kill(read_card(home).pid, signal.SIGKILL)  # type: ignore[union-attr]
    await agent_lock.wait_for_end(home)
    reserved = keys(home, "ends", "wall", "idle", "lives", "other")
    async with opened(home, owner=owner(2), durable=True) as launcher:
        await launcher.reconcile(reserved, same_boot=True)
        endings = {}
        for job, attempt in reserved:
            found = launcher.adopt(job, attempt)
            if found is not None:
                receipt = await found.exited()
                assert receipt.remaining == ()
                endings[job] = receipt.ending
        assert endings == {
            named(home, "ends"): "lost",
            named(home, "wall"): "wall",
            named(home, "idle"): "idle",
            named(home, "lives"): "lost",
        }
        assert not survivors(lasting)


async def test_without_proof_that_the_machine_ran_on_absence_proves_nothing(
    durable_home: Path,
) -> None:
    for same_boot in (False, True, True):  # the first ones die before they save it
        async with opened(durable_home, owner=owner(2), durable=True) as launcher:
            reserved = {("a", 1): None} | ({("b", 1): None} if same_boot else {})
            await launcher.reconcile(reserved, same_boot=same_boot)
            receipt = await adopted(launcher, "a").exited()
            assert (receipt.ending, receipt.remaining) == ("lost", ())
            assert launcher.adopt("b", 1) is None
        await agent_lock.wait_for_end(durable_home)


async def test_a_start_that_ended_before_it_looked_proves_no_absence(
    durable_home: Path,
) -> None:
    """Its owner is of this boot; what ran before may have run on the one before."""
    (durable_home / "receipts").mkdir()
    (durable_home / "receipts" / "boot").write_text("another")
    async with opened(durable_home, owner=owner(2), durable=True) as launcher:
        await launcher.reconcile({("a", 1): None}, same_boot=True)
        assert (await adopted(launcher, "a").exited()).ending == "lost"
        launcher.forget("a", 1)
        assert list((durable_home / "receipts").glob("*-doubtful*")) == []
        await launcher.reconcile({("b", 1): None}, same_boot=True)
        assert launcher.adopt("b", 1) is None


async def test_where_nothing_can_be_written_down_the_doubt_stays(
    durable_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journals, "_write", full)
    for _ in range(2):
        async with opened(durable_home, owner=owner(2), durable=True) as launcher:
            (durable_home / "receipts" / "boot").write_text("another")
            await launcher.reconcile({("a", 1): None}, same_boot=True)
            assert (await adopted(launcher, "a").exited()).ending == "lost"
        await agent_lock.wait_for_end(durable_home)


async def test_a_journal_that_cannot_be_read_proves_nothing(
    durable_home: Path,
) -> None:
    (durable_home / "receipts").mkdir()
    path = durable_home / "receipts" / "1-1.jsonl"
    path.write_text('{"rec\n{"record":"held","job":"held","attempt":1,"fence":2}\n')
    async with opened(durable_home, durable=True) as launcher:
        reserved = {("a", 1): None, ("held", 1): None}
        await launcher.reconcile(reserved, same_boot=True)
        assert (await adopted(launcher, "a").exited()).ending == "lost"
        assert launcher.adopt("held", 1) is None


async def test_a_journal_is_kept_until_all_that_it_says_is_saved(
    durable_home: Path,
) -> None:
    (durable_home / "receipts").mkdir()
    path = durable_home / "receipts" / "1-1.jsonl"
    identity = '{"boot_id":"other","pid":1,"start_ticks":1}'
    stamp = f'"fence":2,"instance":"i","release":"r","identity":{identity}'
    lines = [
        f'{{"record":"started","job":"a","attempt":1,{stamp}}}',
        '{"job":"b","attempt":1,"fence":4,"ending":"exit","ended_at":1,"exit_code":5}',
        '{"job":"saved","attempt":1,"fence":4,"ending":"exit","ended_at":1}',
        '{"record":"starting","job":"torn","atte',
    ]
    path.write_text("\n".join(lines))
    for _ in range(2):  # the first one dies before it has saved anything
        async with opened(durable_home, durable=True) as launcher:
            reserved = {("a", 1): None, ("b", 1): None, ("torn", 1): None}
            await launcher.reconcile(reserved, same_boot=True)
            a = await adopted(launcher, "a").exited()
            assert (a.ending, a.fence) == ("lost", 2)
            assert (a.instance, a.release) == ("i", "r")
            assert (await adopted(launcher, "b").exited()).exit_code == 5
            assert launcher.adopt("torn", 1) is None
        await agent_lock.wait_for_end(durable_home)
        assert path.exists()
    async with opened(durable_home, durable=True) as launcher:
        await launcher.reconcile({("a", 1): None, ("b", 1): None}, same_boot=True)
        launcher.forget("a", 1)
        assert path.exists()
        launcher.forget("b", 1)
        assert not path.exists()


async def test_what_no_job_of_the_store_is_at_is_ended(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, durable=True) as launcher:
        for job in ("known", "unknown"):
            await launcher.launch(order(home, "sleep", lasting, job=job)).started()
        ended = launcher.launch(order(home, "true", job="ended"))
        await ended.exited()
    async with opened(home, durable=True) as launcher:
        await launcher.reconcile(keys(home, "known"), same_boot=True)
        assert launcher.adopt(named(home, "ended"), 1) is None
        unknown = adopted(launcher, named(home, "unknown"))
        assert (await unknown.exited()).ending == "stop"
        assert launcher.adopt(named(home, "unknown"), 1) is None
        known = adopted(launcher, named(home, "known"))
        assert known.receipt is None
        launcher.end_all()
    assert known.receipt is not None
    assert known.receipt.ending == "owner"
    assert not survivors(lasting)


async def test_a_runtime_that_needs_no_service_takes_over_and_ends_all(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, owner=owner(1), durable=True) as launcher:
        attempt = launcher.launch(order(home, "sleep", lasting))
        identity = await attempt.started()
    async with opened(home, owner=owner(2)) as launcher:
        taken = adopted(launcher, named(home))
        assert await taken.started() == identity
    assert taken.receipt is not None
    assert taken.receipt.ending == "owner"
    assert not survivors(lasting)
    assert agent_lock.living_instance(home) is None


async def test_an_earlier_owner_is_refused_and_one_that_is_replaced_gives_up(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, owner=owner(5), durable=True) as first:
        attempt = first.launch(order(home, "sleep", lasting))
        await attempt.started()
        with pytest.raises(LauncherDown, match="came later owns this home"):
            async with open_launcher(home, owner=owner(4), durable=True):
                pass
        async with opened(home, owner=owner(6), durable=True) as second:
            with pytest.raises(LauncherDown, match="another runtime has taken over"):
                await first.wait_down()
            with pytest.raises(LauncherDown, match="taken over"):
                first.launch(order(home, "true", job="late"))
            attempt.stop()  # nobody listens any more
            assert attempt.receipt is None
            again = second.launch(order(home, "true", job="again"))
            assert (await again.exited()).exit_code == 0
            assert adopted(second, named(home)).receipt is None
            assert len(survivors(lasting)) == 1


async def test_when_a_durable_agent_dies_a_durable_one_takes_its_place(
    durable_home: Path, lasting: str
) -> None:
    home = durable_home
    async with opened(home, durable=True) as launcher:
        lost = launcher.launch(order(home, "sleep", lasting, job="lost"))
        await lost.started()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await lost.exited()).ending == "lost"
        lives = launcher.launch(order(home, "sleep", lasting, job="lives"))
        identity = await lives.started()
    async with opened(home, durable=True) as launcher:
        lives = adopted(launcher, named(home, "lives"))
        assert await lives.started() == identity
        # This one is no child of ours.
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await lives.exited()).ending == "lost"
        assert not survivors(lasting)
        again = launcher.launch(order(home, "true", job="again"))
        assert (await again.exited()).exit_code == 0


async def test_what_a_dead_agent_had_not_heard_of_is_given_to_the_next(
    durable_home: Path,
) -> None:
    home = durable_home
    async with opened(home, durable=True) as launcher:
        os.kill(launcher.agent_pid, signal.SIGSTOP)
        begins = launcher.launch(order(home, "true", job="begins"))
        stopped = launcher.launch(order(home, "true", job="stopped"))
        stopped.stop()
        os.kill(launcher.agent_pid, signal.SIGKILL)
        assert (await begins.exited()).exit_code == 0
        receipt = await stopped.exited()
        assert (receipt.ending, receipt.started_at) == ("stop", None)


async def test_a_sign_of_life_is_given_when_it_is_asked_for(
    durable_home: Path,
) -> None:
    async with opened(durable_home, durable=True) as launcher:
        before = launcher.heard_at
        launcher.ping()
        while launcher.heard_at == before:
            await trio.lowlevel.checkpoint()


def test_the_file_of_an_agent_is_for_its_user_alone(durable_home: Path) -> None:
    async def look() -> tuple[int, int, dict[str, object]]:
        async with opened(durable_home, owner=owner(1), durable=True):
            file, sock = durable_home / "agent.json", durable_home / "agent.sock"
            card = json.loads(file.read_text())
            return file.stat().st_mode & 0o777, sock.stat().st_mode & 0o777, card

    file, sock, card = trio.run(look)
    assert (file, sock) == (0o600, 0o600)
    assert set(card) == {
        *("protocol", "instance", "pid", "start_ticks", "boot_id", "namespace"),
        *("socket", "secret", "release"),
    }
    assert card["release"] == "r1"
    assert len(str(card["secret"])) == 64
    assert str(card["secret"]) not in repr(finding.Card(**card))  # type: ignore[arg-type]


async def test_a_socket_in_a_folder_of_others_is_refused(durable_home: Path) -> None:
    open_folder = durable_home / "open"
    open_folder.mkdir()
    open_folder.chmod(0o755)
    with pytest.raises(LauncherDown, match="ended at its start"):
        async with open_launcher(
            durable_home, durable=True, socket_path=str(open_folder / "s")
        ):
            pass
    said = (durable_home / "agent.log").read_text()
    assert "its folder must be for its owner alone" in said
