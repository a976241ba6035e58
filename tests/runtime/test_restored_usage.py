"""A restored home knows what agents had used, in the backup and since."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.agents import Usage
from forge_actors.testing.store_contract import job, repository
from forge_actors.testing.usage_contract import used
from tests.runtime.test_restore import (
    backup,
    home,  # noqa: F401 - a fixture
    opened,
    put_back,
    saved,
    wreck,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.runtime.restore import How


async def known(home: Path) -> Usage | None:
    async with opened(home) as store:
        return store.session_usage("codex", "s")


async def test_what_was_used_before_and_since_the_backup_is_known(home: Path) -> None:
    await saved(home, repository(), job(), used(1, Usage(100, 7, 0)))
    file = backup(home)
    # The first attempt is told anew, as after another restore: what is there counts.
    later = used(1, Usage(90, 7, 0)), used(2, Usage(20, 1, 0), resumed=True)
    await saved(home, *later)
    put_back(home, file)
    assert await known(home) == Usage(110, 8, 0)


async def test_an_empty_store_and_a_salvaged_one_know_it_too(home: Path) -> None:
    hows: tuple[How, ...] = ("salvage", "empty")
    await saved(home, repository(), job(), used(1, Usage(100, 7, 0)))
    for how in hows:
        put_back(home, None, how)
        assert await known(home) == Usage(100, 7, 0)


async def test_of_a_wrecked_store_the_backup_tells_what_was_used(home: Path) -> None:
    await saved(home, repository(), job(), used(1, Usage(100, 7, 0)))
    file = backup(home)
    wreck(home)
    put_back(home, file)
    assert await known(home) == Usage(100, 7, 0)
