"""A clean-up that hangs in a real service: jobs go on, and nothing of it is left."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.bench import wait_until_ended
from tests.acceptance.service import started

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.acceptance.service import LiveService

ROOT = Path(__file__).parent.parent.parent
#: The service with a clean-up whose class of this name does this.
PATCH = """\
sys.path.insert(0, {root!r})
from forge_actors.domain.maintenance import Policy
from forge_actors.edges.cleanup import process
from forge_actors.runtime.settings import Settings
process.PROGRAM = "tests.edges.behaving_program"
policy = Policy(rules={{"behave": {{"jobs": {how!r}}}}})
Settings.cleaning = property(lambda _: policy)
"""


@pytest.fixture
def hanging(service: LiveService) -> Iterator[tuple[LiveService, list[int]]]:
    """A service whose clean-up hangs, and the processes of that."""
    service.end()
    pids = service.root / "pids"
    os.mkfifo(pids)
    how = f"children:{pids}"
    service.start_patched(PATCH.format(root=str(ROOT), how=how))
    # For writing too: between the two that tell their number there is no end of it.
    with (
        started("--home", service.home, "clean"),
        open(os.open(pids, os.O_RDWR)) as told,
    ):
        children = [int(told.readline()) for _ in ("in the group", "away from it")]
        workers = [*children, *map(int, workers_of(service.pid))]
        assert len(workers) >= 3
        yield service, workers


def workers_of(pid: int) -> list[str]:
    children: list[str] = []
    for task in Path(f"/proc/{pid}/task").iterdir():
        with suppress(OSError):  # the thread has just ended
            children += (task / "children").read_text().split()
    found = []
    for child in children:
        with suppress(OSError):  # another program, which has just ended
            environ = Path(f"/proc/{child}/environ").read_bytes().split(b"\0")
            if b"FORGE_RUNTIME_MAINTENANCE_WORKER=1" in environ:
                found.append(child)
    return found


def test_jobs_and_questions_go_on_while_a_clean_up_hangs(
    hanging: tuple[LiveService, list[int]],
) -> None:
    service, workers = hanging
    job = service.submit("--repo", "app", "--", "true")
    assert service.end_of(job)["exit_code"] == 0
    status: dict[str, Any] = service.json("status")
    assert status["ready"]
    assert status["maintenance"]["last"]["ended_at"] is None
    service.terminate()
    assert all(wait_until_ended(pid) for pid in workers)


def test_it_ends_with_a_service_that_is_killed(
    hanging: tuple[LiveService, list[int]],
) -> None:
    service, workers = hanging
    service.kill()
    assert all(wait_until_ended(pid) for pid in workers)
    service.start()
    shown = service.json("status")["maintenance"]
    assert (shown["runs"], shown["last"]["ended_at"]) == (1, None)
    job = service.submit("--repo", "app", "--", "true")
    assert service.end_of(job)["exit_code"] == 0
