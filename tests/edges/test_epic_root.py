"""The files of EPIC runs: below one folder, and nowhere else."""

from __future__ import annotations

import os
import socket
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.errors import StateError
from forge_actors.domain.epic.ports import Entry
from forge_actors.edges.epic import root as edge
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.testing.epic.root import MemoryRoot
from forge_actors.testing.epic.roots_contract import CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from forge_actors.domain.epic.ports import Root

FILE = ("forge-actors", "issues", "12", "binding.json")
SECRET = b"nobody reads or writes this"


@contextmanager
def on_disk(folder: Path) -> Iterator[FolderRoot]:
    (folder / "root").mkdir()
    root = FolderRoot(str(folder / "root"))
    try:
        yield root
    finally:
        root.close()


@contextmanager
def in_memory(folder: Path) -> Iterator[MemoryRoot]:
    root = MemoryRoot()
    try:
        yield root
    finally:
        root.close()


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("made", [on_disk, in_memory])
def test_every_root_keeps_the_contract(
    made: Callable[[Path], AbstractContextManager[Root]],
    check: Callable[[Root], None],
    tmp_path: Path,
) -> None:
    with made(tmp_path) as root:
        check(root)


def names(folder: Path) -> list[str]:
    """What is in it."""
    return sorted(each.name for each in folder.iterdir())


def plant(kind: str, place: Path, target: Path) -> None:
    """Put something there that is no file of ours."""
    place.parent.mkdir(parents=True, exist_ok=True)
    match kind:
        case "link":
            place.symlink_to(target)
        case "dangling":
            place.symlink_to(target.with_name("not-there"))
        case "hard link":
            place.hardlink_to(target)
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            os.chdir(place.parent)  # an address has no more than a hundred characters
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(place.name)


KINDS = ["link", "dangling", "hard link", "fifo", "folder", "socket"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_file_of_ours_is_refused_and_its_target_untouched(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "target"
    target.write_bytes(SECRET)
    with on_disk(tmp_path) as root:
        place = tmp_path.joinpath("root", *FILE)
        plant(kind, place, target)
        before = place.lstat()
        for act in (
            lambda: root.read(FILE, 100),
            lambda: root.write(FILE, b"ours"),
            lambda: root.create(FILE, b"ours"),
            lambda: root.append(FILE, 100),
            lambda: root.open_lock(FILE),
            lambda: root.open_lock(FILE, make=False),
        ):
            with pytest.raises(StateError, match=r"^forge-actors/issues/12/bind"):
                act()
        after = place.lstat()
        assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
        # Nothing else was made, neither here nor where a link leads.
        assert names(place.parent) == [FILE[-1]]
        assert names(tmp_path) == ["root", "target"]
        expected = {"folder": "folder", "hard link": "file"}.get(kind, "other")
        assert root.entries(FILE[:-1]) == [Entry(FILE[-1], expected)]  # type: ignore[arg-type]
        assert root.move(FILE, "aside")
        assert root.move((*FILE[:-1], "aside"), FILE[-1])
        # The name of all but a folder can be removed; what it leads to is not.
        if kind == "folder":
            with pytest.raises(StateError):
                root.remove(FILE)
        else:
            assert root.remove(FILE)
    assert target.read_bytes() == SECRET


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "folder"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_way_leads_through_what_is_no_folder(
    kind: str, depth: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    target = tmp_path / "target"
    if kind == "link":  # to a folder, with all that is looked for in it
        below = target.joinpath(*FILE[depth:])
        below.parent.mkdir(parents=True)
        below.write_bytes(SECRET)
    else:
        target.write_bytes(SECRET)
    with on_disk(tmp_path) as root:
        plant(kind, tmp_path.joinpath("root", *FILE[:depth]), target)
        for act in (
            lambda: root.read(FILE, 100),
            lambda: root.write(FILE, b"ours"),
            lambda: root.append(FILE, 100),
            lambda: root.entries(FILE[:-1]),
            lambda: root.remove(FILE),
            lambda: root.open_lock(FILE),
        ):
            with pytest.raises(StateError):
                act()
    if kind == "link":
        assert below.read_bytes() == SECRET
        assert names(below.parent) == [FILE[-1]]
    else:
        assert target.read_bytes() == SECRET


def test_a_folder_that_becomes_a_link_on_the_way_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / FILE[-1]).write_bytes(SECRET)
    with on_disk(tmp_path) as root:
        issue = tmp_path.joinpath("root", *FILE[:-1])
        step = edge._step

        def exchange(folder: int, name: str, *, make: bool) -> int | None:
            """Exchange the last folder as soon as, or right before, it is opened."""
            if name != FILE[-2]:
                return step(folder, name, make=make)
            if early:
                issue.rename(issue.with_name(f"old{len(names(issue.parent))}"))
                issue.symlink_to(elsewhere)
            opened = step(folder, name, make=make)
            issue.rename(issue.with_name(f"old{len(names(issue.parent))}"))
            issue.symlink_to(elsewhere)
            return opened

        for early in (True, False):
            for act in (
                lambda: root.write(FILE, b"ours"),
                lambda: root.read(FILE, 100),
                lambda: os.close(root.append(FILE, 100)),
                lambda: root.remove(FILE),
            ):
                issue.mkdir(parents=True, exist_ok=True)
                (issue / FILE[-1]).write_bytes(b"kept")
                with monkeypatch.context() as patched:
                    patched.setattr(edge, "_step", exchange)
                    if early:
                        with pytest.raises(StateError):
                            act()
                    else:
                        assert act() in (None, b"kept", True)
                issue.unlink()
    assert names(elsewhere) == [FILE[-1]]
    assert (elsewhere / FILE[-1]).read_bytes() == SECRET


def test_what_is_made_is_only_ours_to_read(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        with on_disk(tmp_path) as root:
            root.write(FILE, b"a")
            os.close(root.append((*FILE[:-1], "workers", "1.log"), 10))
            lock = root.open_lock((*FILE[:-1], "run.lock"))
            assert lock is not None
            os.close(lock)
    finally:
        os.umask(old)
    found = {
        each.name: stat.S_IMODE(each.lstat().st_mode)
        for each in (tmp_path / "root").rglob("*")
    }
    files = {FILE[-1]: 0o600, "1.log": 0o600, "run.lock": 0o600}
    assert found == files | dict.fromkeys((*FILE[:-1], "workers"), 0o700)


def test_a_write_that_fails_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_disk(tmp_path) as root:
        root.write(FILE, b"before")
        for name in ("write", "fsync", "rename"):
            with monkeypatch.context() as patched:

                def fail(*args: object, **named: object) -> None:
                    raise OSError(28, "No space left on device")

                patched.setattr(os, name, fail)
                with pytest.raises(StateError, match="No space left on device"):
                    root.write(FILE, b"after")
            assert root.read(FILE, 100) == b"before"
            assert names(tmp_path.joinpath("root", *FILE[:-1])) == [FILE[-1]]


def test_a_write_that_was_cut_short_is_no_file(tmp_path: Path) -> None:
    with on_disk(tmp_path) as root:
        root.write(FILE, b"whole")
        folder = tmp_path.joinpath("root", *FILE[:-1])
        (folder / ".unfinished-0123456789abcdef").write_bytes(b"half")
        (folder / ".unfinished-else").write_bytes(b"a name that is not ours")
        found = [each.name for each in root.entries(FILE[:-1]) or ()]
        assert found == [".unfinished-else", FILE[-1]]


def test_a_folder_with_too_much_in_it_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge, "MAX_ENTRIES", 2)
    with on_disk(tmp_path) as root:
        for name in ("a", "b"):
            root.write((name,), b"")
        assert len(root.entries(()) or ()) == 2
        root.write(("c",), b"")
        with pytest.raises(StateError, match="more than 2 entries"):
            root.entries(())


def test_what_keeps_growing_while_it_is_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with on_disk(tmp_path) as root:
        root.write(FILE, b"1")
        regular = edge._regular

        def grow(file: int, place: tuple[str, ...]) -> os.stat_result:
            status = regular(file, place)
            tmp_path.joinpath("root", *FILE).write_bytes(b"x" * 1000)
            return status

        monkeypatch.setattr(edge, "_regular", grow)
        with pytest.raises(StateError, match="longer than 10 bytes"):
            root.read(FILE, 10)


def test_a_root_stays_the_folder_that_was_opened(tmp_path: Path) -> None:
    with on_disk(tmp_path) as root:
        root.write(("file",), b"ours")
        (tmp_path / "root").rename(tmp_path / "moved")
        (tmp_path / "root").mkdir()
        assert root.read(("file",), 10) == b"ours"
        root.write(("file",), b"more")
    assert (tmp_path / "moved" / "file").read_bytes() == b"more"
    root.close()
    for act in (lambda: root.read(("file",), 10), root.reopen, root.identity):
        with pytest.raises(StateError, match="was let go of"):
            act()


def test_only_a_folder_is_a_root(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to(tmp_path)
    for name in ("file", "link", "none", "a\0b"):
        with pytest.raises(StateError):
            FolderRoot(str(tmp_path / name))


def test_no_access_leaves_a_descriptor_open(tmp_path: Path) -> None:
    with on_disk(tmp_path) as root:
        before = names(Path("/proc/self/fd"))
        root.write(FILE, b"x")
        root.read(FILE, 10)
        root.entries(FILE[:-1])
        (tmp_path / "twice").hardlink_to(tmp_path.joinpath("root", *FILE))
        os.mkfifo(tmp_path / "root" / "fifo")
        odd = [("a", "..", "b"), (*FILE, "below"), FILE[:-1], FILE, ("fifo",)]
        for place in odd:
            for act in (
                lambda place: root.read(place, 10),
                lambda place: root.write(place, b""),
                lambda place: root.append(place, 10),
                root.open_lock,
            ):
                with pytest.raises(StateError):
                    act(place)
        assert names(Path("/proc/self/fd")) == before
