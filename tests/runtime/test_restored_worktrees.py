"""Restored and moved homes know of the worktrees that are there, and of no others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.moving import LEFT_BEHIND
from forge_actors.runtime.export import export
from forge_actors.runtime.importing import import_home
from forge_actors.testing.store_contract import job, repository
from forge_actors.testing.worktree_rows_contract import changed, worktree
from tests.runtime.kit import make_repository, running
from tests.runtime.test_restore import (
    NOW,
    backup,
    home,  # noqa: F401 - a fixture
    opened,
    put_back,
    saved,
    wreck,
)

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.worktrees import Worktree
    from forge_actors.runtime.restore import How


async def known(home: Path, name: str) -> Worktree | None:
    async with opened(home) as store:
        return store.worktree(name)


async def test_what_is_known_since_the_backup_stays_known(home: Path) -> None:
    """A restore changes no folder: what was made and removed since stays so."""
    old = structs.replace(worktree("old"), state="ready")
    gone = structs.replace(worktree("gone"), state="ready")
    jobs = [job("old"), job("gone"), job("new")]
    await saved(home, repository(), *jobs, changed(old), changed(gone))
    file = backup(home)
    removed = structs.replace(gone, state="removed", removed_at=30.0)
    await saved(home, changed(removed), changed(worktree("new")))
    put_back(home, file)
    assert await known(home, "old") == old
    assert await known(home, "gone") == removed
    assert await known(home, "new") == worktree("new")


async def test_an_empty_store_and_a_salvaged_one_know_them_too(home: Path) -> None:
    hows: tuple[How, ...] = ("salvage", "empty")
    await saved(home, repository(), job("one"), changed(worktree("one")))
    for how in hows:
        put_back(home, None, how)
        assert await known(home, "one") == worktree("one")


async def test_of_a_wrecked_store_the_backup_tells_what_there_was(home: Path) -> None:
    await saved(home, repository(), job("one"), changed(worktree("one")))
    file = backup(home)
    wreck(home)
    put_back(home, file)
    assert await known(home, "one") == worktree("one")


async def test_worktrees_stay_on_their_machine(tmp_path: Path) -> None:
    source, app = tmp_path / "source", make_repository(tmp_path / "app")
    async with running(source) as runtime:
        await runtime.add_repository(app)
        made = await runtime.submit(app, ["true"], isolate=True)
        await made.wait()
    file = tmp_path / "home.tar"
    export(source, file, NOW)
    target = tmp_path / "target"
    await import_home(target, file, {}, GitProgram(), NOW)
    found = await known(target, made.id)
    assert found is not None
    assert (found.state, found.reason) == ("removed", LEFT_BEHIND)
    assert not (target / "worktrees").exists()
