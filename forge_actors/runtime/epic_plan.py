"""The graph of an EPIC, read from the files of a plan.

It is read again for each snapshot, so that a change of a file, saved while a run goes
on, is what a change on GitHub is.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.epic.graph import (
    IssueText,
    Reread,
    SnapshotRefused,
    differences,
    node_digest,
    snapshot_of,
)
from forge_actors.domain.epic.plan_file import (
    MAX_BYTES,
    MAX_FILE_BYTES,
    MAX_ISSUES,
    Plan,
    PlanFile,
    children_of,
    epic_of,
    is_issue_file,
    read_folder,
    read_plan,
    repository_of,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.epic.graph import (
        EpicNode,
        Graph,
        RepositoryNode,
        Snapshot,
    )

#: Seconds after which files that cannot be used are read once more: an editor may be
#: in the middle of saving them.
AGAIN = 0.25
#: Names in the folder of a plan, whatever they are.
MAX_NAMES = 10_000
_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK


class PlanGraph:
    """Implements `domain.epic.graph.Graph`, from one file or a folder of them."""

    def __init__(
        self,
        path: Path,
        *,
        key: str | None = None,
        wall: Callable[[], float] = time.time,
        sleep: Callable[[float], Awaitable[object]] = trio.sleep,
    ) -> None:
        self._path = path
        self._key = plan_key(path) if key is None else key
        self._wall = wall
        self._sleep = sleep
        self._epic: int | None = None

    async def repository(self) -> RepositoryNode:
        """See the port."""
        await self._plan()
        return repository_of(self._key)

    async def epic(self) -> EpicNode:
        """See the port."""
        return self._same(await self._plan())

    async def snapshot(self) -> Snapshot:
        """See the port."""
        observed = timestamp(self._wall())
        plan = await self._plan()
        epic = self._same(plan)
        home = repository_of(self._key)
        return snapshot_of(observed, home, epic, children_of(plan, self._key))

    async def reread(self, snapshot: Snapshot, number: int) -> Reread:
        """See the port."""
        plan = await self._plan()
        old = snapshot.child(number)
        for new, issue in zip(children_of(plan, self._key), plan.issues, strict=True):
            if new.number == number and old is not None:
                told = IssueText(issue.title, issue.body)
                return Reread(new, node_digest(new), differences(old, new), told)
        raise SnapshotRefused("not-found", f"{self._path} has no issue {number}")

    async def close(self) -> None:
        """See the port."""

    def _same(self, plan: Plan) -> EpicNode:
        epic = epic_of(plan, self._key)
        if self._epic not in (None, epic.number):
            raise SnapshotRefused(
                "not-found",
                f"{self._path} is about another EPIC now: its number was {self._epic}"
                f" and is {epic.number}",
            )
        self._epic = epic.number
        return epic

    async def _plan(self) -> Plan:
        try:
            return await trio.to_thread.run_sync(read_files, self._path)
        except (InvalidInput, OSError):
            await self._sleep(AGAIN)
        try:
            return await trio.to_thread.run_sync(read_files, self._path)
        except InvalidInput as error:
            raise SnapshotRefused("malformed", str(error)) from None
        except FileNotFoundError:
            raise SnapshotRefused("not-found", f"there is no {self._path}") from None
        except OSError as error:
            why = f"{self._path} cannot be read: {error.strerror}"
            raise SnapshotRefused("denied", why) from None


def plan_key(path: Path) -> str:
    """What a plan is known by: its path in the checkout that it is in, so that every
    worktree of a repository means the same EPIC by it; else all of its path."""
    whole = path.resolve()
    for folder in whole.parents:
        if (folder / ".git").exists():
            return whole.relative_to(folder).as_posix()
    return whole.as_posix()


def read_files(path: Path) -> Plan:
    """The plan that is in a file, or in the files of a folder.

    Raises:
        InvalidInput: it is none.
        OSError: it cannot be read.
    """
    if path.is_dir():
        return read_folder(_files(path), path.name)
    return read_plan(PlanFile(path.name, _read(path, MAX_FILE_BYTES)))


def _files(folder: Path) -> list[PlanFile]:
    names = []
    with os.scandir(folder) as entries:
        for count, entry in enumerate(entries):
            if count >= MAX_NAMES:
                raise InvalidInput(folder.name, f"has more than {MAX_NAMES} names")
            if is_issue_file(entry.name):
                names.append(entry.name)
    if len(names) > MAX_ISSUES + 1:
        raise InvalidInput(folder.name, f"has more than {MAX_ISSUES} issues")
    files, left = [], MAX_BYTES
    for name in sorted(names):
        text = _read(folder / name, min(left, MAX_FILE_BYTES), os.O_NOFOLLOW)
        left -= len(text.encode())
        files.append(PlanFile(name, text))
    return files


def _read(path: Path, most: int, flags: int = 0) -> str:
    with open(os.open(path, _FLAGS | flags), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise InvalidInput(path.name, "is no regular file")
        content = file.read(most + 1)
    if len(content) > most:
        raise InvalidInput(path.name, f"is larger than {most} bytes")
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InvalidInput(f"{path.name}:{line}", "is no UTF-8") from None


if TYPE_CHECKING:
    _is_a_port: Callable[[Path], Graph] = PlanGraph
