"""A job that lasts, and the service that ends its jobs around it."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.agent_lock import living_instance
from forge_actors.runtime import parts
from forge_actors.runtime.candidates import AdmissionDesk
from forge_actors.runtime.readiness import Board
from forge_actors.runtime.runtime import Serving, open_served
from tests.edges.test_node_descriptors import is_free
from tests.runtime.control_kit import Case
from tests.runtime.kit import make_repository
from tests.runtime.test_candidates import WORK, Locking, begun, submit

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    import pytest

    from forge_actors import Runtime

#: Counts how often it was asked to end, and does not. It rings when it can be asked,
#: and when it was.
STAYS = """
trap 'echo asked >> asked; echo asked > ../bell' INT
sleep 600 & echo $! > sleeper
echo ready > ../bell
while kill -0 $! 2>/dev/null; do wait $!; done
exit 3
"""


def served(home: Path) -> AbstractAsyncContextManager[Runtime]:
    async def owned(*_: object) -> None:
        pass

    socket = str(home / "agent.sock")
    return open_served(home, Serving(lambda: socket, Board(), owned))


async def test_a_service_that_ends_its_jobs_asks_it_twice_and_leaves_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    text = "[pressure]\nmin_free_memory_mb = 64\nmax_load_per_cpu = 10000.0\n"
    (home / "settings.toml").write_text(text)
    app = make_repository(tmp_path / "app")
    os.mkfifo(tmp_path / "bell")
    bell = os.open(tmp_path / "bell", os.O_RDWR | os.O_CLOEXEC)
    desk, locking = AdmissionDesk(), Locking(tmp_path, ("bash", "-c", STAYS))
    monkeypatch.setattr(parts, "AdmissionDesk", lambda: desk)
    monkeypatch.setattr(parts, "STOP_SECONDS", 0.3)
    with desk.serving(WORK, locking):
        async with served(home) as runtime:
            case = Case(runtime, tmp_path)
            await case.control.add_repository(str(app))
            job = await submit(case, grace=0.1)
            await begun(case, job)
            await trio.lowlevel.wait_readable(bell)
            assert os.read(bell, 6) == b"ready\n"
            case.control.request_stop(jobs=True)
        await trio.lowlevel.wait_readable(bell)
        [process] = locking.began
        assert tree.lives(process.pid, process.start_ticks)
        assert living_instance(home) is None, "the agent has ended"
        assert locking.ended == []
        assert not is_free(tmp_path, "a")
        assert 1 <= asked(app) <= 2
        async with served(home) as runtime:
            case = Case(runtime, tmp_path)
            assert (await case.control.job(job)).state == "running"
            await case.control.cancel(job)
            assert tree.lives(process.pid, process.start_ticks)
            os.kill(int((app / "sleeper").read_text()), signal.SIGKILL)
            [view] = await case.control.wait([job])
            assert (view.state, view.exit_code) == ("cancelled", None)
            assert is_free(tmp_path, "a", "b")
            assert 1 <= asked(app) <= 2
            assert len(locking.orders) == 1, "nobody was asked about it again"
    os.close(bell)


def asked(folder: Path) -> int:
    return (folder / "asked").read_text().count("asked\n")
