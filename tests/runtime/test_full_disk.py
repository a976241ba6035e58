"""A start on a disk that has little room, or none: it starts, or says why not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors import open_runtime
from forge_actors.domain.errors import ForgeError
from tests.runtime.kit import make_repository
from tests.small_disk import needs_root, small_disk

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = needs_root

#: More than a start may take, and less than the safety pass.
SECONDS = 50


@pytest.mark.parametrize("kib", [4, 40, 80, 90, 100, 110, 120])
async def test_a_start_without_room_says_so_and_ends(tmp_path: Path, kib: int) -> None:
    """The sizes in the middle have room for the store, not for its first events."""
    refused = ""
    with small_disk(tmp_path / "home", kib), trio.fail_after(SECONDS):
        try:
            async with open_runtime(tmp_path / "home", stop="shutdown"):
                pass
        except ForgeError as error:
            refused = str(error)
    assert re.search("full|[Nn]o space", refused) or (kib > 100 and not refused)


@pytest.mark.parametrize("kib", [1024, 20_000])
async def test_a_start_with_little_room_leaves_it_to_the_jobs(
    tmp_path: Path, kib: int
) -> None:
    app = make_repository(tmp_path / "app")
    with small_disk(tmp_path / "home", kib), trio.fail_after(SECONDS):
        async with open_runtime(tmp_path / "home", stop="shutdown") as runtime:
            job = await runtime.submit(app, ["true"])
            assert (await job.wait()).state == "succeeded"
