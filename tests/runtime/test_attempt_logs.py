"""The output of each attempt of a job, and of a job that is followed through them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.control_kit import Case

ACTIVE = JobQuery(active=True)
#: Fails once; each attempt says which one it is.
TWICE = ("sh", "-c", 'echo "attempt $FORGE_ATTEMPT"; test "$FORGE_ATTEMPT" = 2')


async def read(case: Case, job: str, attempt: int | None = None) -> bytes:
    data = b""
    while True:
        chunk = await case.control.read_log(
            job, "stdout", len(data), limit=100, wait=True, attempt=attempt
        )
        data += chunk.data
        if chunk.ended:
            return data


async def test_each_attempt_has_a_log_of_its_own(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit("app", *TWICE, replay="always", max_attempts=2)
        # Both are asked for before they begin.
        found: dict[int, bytes] = {}

        async def follow(attempt: int) -> None:
            found[attempt] = await read(case, job, attempt)

        async with trio.open_nursery() as nursery:
            for attempt in (1, 2, 3):
                nursery.start_soon(follow, attempt)
        assert found == {1: b"attempt 1\n", 2: b"attempt 2\n", 3: b""}
        [view] = await case.control.wait([job])
        assert (view.state, view.attempt) == ("succeeded", 2)
        assert await read(case, job) == b"attempt 2\n"


async def test_the_start_of_what_came_since_a_time(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit("app", "echo", "x")
        await case.control.wait([job])
        assert await case.control.log_start(job, "stdout", "1h") == 0
        assert await case.control.log_start(job, "stdout", "2999-01-01T00:00Z") == 2
        assert await case.control.log_start(job, "stderr", "2999-01-01T00:00Z") == 0
        with pytest.raises(InvalidInput, match="since: 'x' is neither"):
            await case.control.log_start(job, "stdout", "x")
        queued = await case.submit("app", "echo", "y", after=[await case.hold()])
        assert await case.control.log_start(queued, "stdout", "1h") == 0
        await case.end(*(view.id for view in await case.control.jobs(ACTIVE)))
