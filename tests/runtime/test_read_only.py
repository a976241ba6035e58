"""A home that nothing can be written to: at the start, and while a runtime has it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import ForgeError, StoreFailed
from tests.acceptance.bench import Gate
from tests.acceptance.service import call
from tests.runtime.kit import make_repository, running
from tests.small_disk import needs_root, read_only

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from forge_actors import Runtime


@contextmanager
def nothing_written(runtime: Runtime) -> Iterator[None]:
    """As after a disk was made read-only because it has errors."""
    db = runtime.control._store._db
    db.execute("PRAGMA query_only = 1")
    try:
        yield
    finally:
        db.execute("PRAGMA query_only = 0")


async def test_what_is_new_is_refused_and_what_runs_goes_on(tmp_path: Path) -> None:
    app, gate = make_repository(tmp_path / "app"), Gate(tmp_path / "gate")
    async with running(tmp_path / "home") as runtime:
        job = await runtime.submit(app, ["bash", "-c", gate.wait])
        with nothing_written(runtime):
            for _ in range(2):
                with pytest.raises(StoreFailed, match="readonly"):
                    await runtime.submit(app, ["true"])
            status = await runtime.status()
            assert status["ready"] is False
            [degraded] = status["degraded"]  # type: ignore[misc]
            assert "the store saves nothing: attempt to write a readonly" in degraded
            gate.open()
        await runtime.control.wait_ready()
        assert (await job.wait()).state == "succeeded"
        again = await runtime.submit(app, ["true"])
        assert (await again.wait()).state == "succeeded"
        assert (await runtime.status())["degraded"] == []


@needs_root
async def test_a_start_says_that_nothing_can_be_written_and_ends(
    tmp_path: Path,
) -> None:
    home = tmp_path / "home"
    async with running(home):
        pass
    with read_only(home):
        with pytest.raises(ForgeError, match="Read-only file system"):
            async with running(home):
                pass
        # Detached, it has nowhere to say why it waits.
        done = call("--home", home, "serve", "--detach")
        assert done.status != 0
        assert (done.err.count("\n"), "Read-only" in done.err) == (1, True)
    async with running(home):
        pass
