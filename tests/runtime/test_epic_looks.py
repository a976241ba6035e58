"""Looks at an EPIC from outside: no change of it is missed."""

from __future__ import annotations

import subprocess
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.epic import places
from forge_actors.domain.epic.records import (
    AdmissionStatus,
    ConfigSummary,
    EpicRef,
    Invocation,
    RepositoryRef,
    Scheduler,
)
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.runtime.epic_looks import Kept
from forge_actors.testing.epic.workers import MOMENT, NO_DIGEST

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Seconds within which a change is told.
SOON = 30.0
RECORD = Scheduler(
    repository=RepositoryRef(101, "octo", "demo"),
    epic=EpicRef(7, 9007),
    invocation=Invocation("i-00000001", MOMENT, MOMENT, "drained"),
    config=ConfigSummary(3, 60.0, 30.0, NO_DIGEST),
    admission=AdmissionStatus("closed", "stop-requested"),
    last_snapshot=None,
    created_at=MOMENT,
    updated_at=MOMENT,
)


@pytest.fixture
def root(tmp_path: Path) -> Iterator[FolderRoot]:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    with closing(FolderRoot(str(tmp_path / ".git"))) as made:
        FileNamespaces(made).write_scheduler(RECORD)
        yield made


async def test_the_first_change_is_told_and_so_is_what_is_made_later(
    root: FolderRoot,
) -> None:
    kept = Kept(root, (), 7)
    with trio.fail_after(SOON):
        async with kept.watched() as changed:
            root.write(places.run_lock(1), b"")
            await changed()
        async with kept.watched() as changed:
            root.write(places.claim(1, 1), b"")
            await changed()


async def test_what_changes_before_anybody_waits_is_told_too(root: FolderRoot) -> None:
    kept = Kept(root, (), 7)
    with trio.fail_after(SOON):
        async with kept.watched() as changed:
            FileNamespaces(root).write_scheduler(RECORD)
            assert kept.record() == RECORD
            await changed()
