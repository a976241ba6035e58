"""Removing trees: all of what is meant, whatever it is, and nothing else."""

from __future__ import annotations

import errno
import os
import socket
import subprocess
import tracemalloc
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.edges.cleanup import walking
from forge_actors.edges.cleanup.folders import Folder, Unsafe, opened_home, shown
from forge_actors.edges.cleanup.walking import (
    ASIDE,
    MAX_DEPTH,
    Remover,
    remove_tree,
)
from tests.other_user import as_user, place_of_a_user
from tests.small_disk import needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.edges.cleanup.walking import Removed


@contextmanager
def opened(home: Path) -> Iterator[tuple[Folder, Folder]]:
    """The folder `logs` of a home, and the one where things are moved aside."""
    with (
        opened_home(str(home)) as top,
        top.make_folder("logs") as logs,
        top.make_folder(ASIDE) as aside,
    ):
        yield logs, aside


def removed(home: Path, name: str) -> Removed:
    with opened(home) as (logs, aside):
        return remove_tree(logs, name, aside)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    place = tmp_path.resolve() / "home"
    (place / "logs").mkdir(parents=True)
    return place


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    place = tmp_path / "victim"
    (place / "inner").mkdir(parents=True)
    (place / "inner" / "file").write_text("precious")
    (place / "file").write_text("precious")
    return place


def assert_whole(victim: Path) -> None:
    assert (victim / "inner" / "file").read_text() == "precious"
    assert (victim / "file").read_text() == "precious"


def test_a_tree_goes_with_everything_in_it(home: Path) -> None:
    tree = home / "logs" / "tree"
    for number in range(3):
        (tree / f"folder{number}" / "deep").mkdir(parents=True)
        (tree / f"folder{number}" / "deep" / "file").write_bytes(bytes(10_000))
    found = removed(home, "tree")
    assert (found.gone, found.left, found.unfinished) == (True, (), False)
    assert found.entries == 10
    assert found.bytes >= 3 * 10_000
    assert list((home / "logs").iterdir()) == []
    assert list((home / ASIDE).iterdir()) == []


def test_what_is_not_there_is_gone(home: Path) -> None:
    assert removed(home, "nothing") == (0, 0, (), True, False)


def test_a_link_is_removed_and_what_it_shows_stays(home: Path, victim: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    (tree / "to-folder").symlink_to(victim)
    (tree / "to-file").symlink_to(victim / "file")
    (tree / "to-nothing").symlink_to("nowhere")
    os.link(victim / "file", tree / "hard")
    (home / "logs" / "link").symlink_to(victim)
    found = removed(home, "tree")
    assert (found.gone, found.left, found.entries) == (True, (), 5)
    assert removed(home, "link").gone
    assert_whole(victim)
    assert list((home / "logs").iterdir()) == []


def test_bytes_of_which_another_name_is_left_do_not_count(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    (tree / "one").write_bytes(bytes(1 << 20))
    os.link(tree / "one", tree / "two")
    (tree / "three").write_bytes(bytes(1 << 20))
    os.link(tree / "three", home / "kept")
    assert 1 << 20 <= removed(home, "tree").bytes < 2 << 20


def test_pipes_sockets_devices_and_names_that_are_no_text_go(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    os.mkfifo(tree / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        folder = os.open(tree, os.O_RDONLY)
        server.bind(f"/proc/self/fd/{folder}/socket")
        os.close(folder)
    odd = os.fsencode(tree) + b"/\xff\xfe\nname"
    os.mkdir(odd)
    with open(odd + b"/\x01", "wb"):
        pass
    entries = 5
    if os.geteuid() == 0:
        os.mknod(tree / "device", 0o600 | 0o020000, os.makedev(1, 3))
        entries += 1
    found = removed(home, "tree")
    assert (found.gone, found.left, found.entries) == (True, (), entries)
    assert shown(os.fsdecode(b"\xff")) == "\\xff"


def tree_of(home: Path) -> Path:
    tree = home / "logs" / "tree"
    tree.mkdir(parents=True)
    return tree


def test_rights_that_are_missing_are_given_where_the_files_are_ours() -> None:
    with place_of_a_user() as place:

        def act() -> list[object]:
            tree = tree_of(place)
            (tree / "module" / "deep").mkdir(parents=True)
            (tree / "module" / "deep" / "file").write_text("x")
            (tree / "closed").mkdir()
            (tree / "closed" / "file").write_text("x")
            for name, mode in [
                ("module/deep", 0o555),
                ("module", 0o555),
                ("closed", 0),
                ("", 0o500),
            ]:
                os.chmod(tree / name, mode)
            found = removed(place, "tree")
            return [found.gone, found.left, list((place / ASIDE).iterdir())]

        assert as_user(act) == [True, [], []]


@needs_root
def test_what_others_own_is_set_aside_and_told_of_once() -> None:
    with place_of_a_user() as place:
        as_user(lambda: tree_of(place).joinpath("mine").write_text("x"))
        theirs = place / "logs" / "tree" / "theirs"
        theirs.mkdir()
        (theirs / "file").write_text("x")

        def act() -> list[object]:
            found = removed(place, "tree")
            return [found.gone, [left.path for left in found.left], found.reason]

        gone, left, reason = as_user(act)
        # Its place is free again, and what could be removed was.
        assert gone
        assert not (place / "logs" / "tree").exists()
        assert left == [f"{place}/logs/tree/theirs/file"]
        assert "rights" in reason
        [aside] = (place / ASIDE).iterdir()
        assert [path.name for path in aside.rglob("*")] == ["theirs", "file"]


def test_a_tree_deeper_than_what_may_be_open_at_once_goes(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    deep = os.open(tree, os.O_RDONLY)
    for number in range(5 * MAX_DEPTH):
        os.mkdir("folder", dir_fd=deep)
        os.mkdir(f"beside{number}", dir_fd=deep)
        below = os.open("folder", os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)
    before = len(list(Path("/proc/self/fd").iterdir()))
    found = removed(home, "tree")
    assert (found.gone, found.left, found.entries) == (True, (), 10 * MAX_DEPTH + 1)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
    assert list((home / ASIDE).iterdir()) == []


def test_forty_thousand_entries_take_little_memory(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    folder = os.open(tree, os.O_RDONLY)
    for number in range(40_000):
        os.mknod(f"{number:06}", dir_fd=folder)
    os.close(folder)
    tracemalloc.start()
    try:
        found = removed(home, "tree")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (found.gone, found.entries) == (True, 40_001)
    assert peak < 1 << 20


def test_without_time_it_stops_and_the_next_goes_on(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    for number in range(300):
        (tree / str(number)).touch()
    looks = iter([True, True, False])
    with opened(home) as (logs, aside):
        found = remove_tree(logs, "tree", aside, may_go_on=lambda: next(looks, False))
        assert (found.gone, found.unfinished) == (True, True)
        assert 0 < found.entries < 300
        assert found.reason == "there was no time left"
        assert not tree.exists()
        entry = next(aside.entries())
        [(seen, rest)] = Remover(aside).finish()
        assert seen == entry
    assert (rest.gone, found.entries + rest.entries) == (True, 301)


def test_a_number_of_entries_is_a_limit_as_well(home: Path) -> None:
    tree = home / "logs" / "tree"
    tree.mkdir()
    for number in range(10):
        (tree / str(number)).touch()
    with opened(home) as (logs, aside):
        entry = logs.entry("tree")
        assert entry is not None
        found = Remover(aside, max_entries=4).remove(logs, entry)
        assert (found.entries, found.unfinished) == (4, True)


def test_what_the_clean_up_did_not_move_aside_stays_there(home: Path) -> None:
    with opened(home) as (_, aside):
        for name in ("note", "0-0123456789abcdef"):
            (home / ASIDE / name).write_text("precious")
        found = list(Remover(aside).finish())
        assert [result.gone for _, result in found] == [False, False]
    assert len(list((home / ASIDE).iterdir())) == 2


def test_where_nothing_can_be_moved_aside_it_is_removed_in_its_place(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = home / "logs" / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / "folder" / "file").touch()

    class Lower:
        """As a file system that moves no folder out of one of its lower layers."""

        def __getattr__(self, name: str) -> object:
            return getattr(os, name)

        def rename(self, *_: object, **__: object) -> None:
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    monkeypatch.setattr(walking, "os", Lower())
    found = removed(home, "tree")
    assert (found.gone, found.left, found.entries) == (True, (), 3)
    assert not tree.exists()


@needs_root
def test_what_is_mounted_in_a_tree_is_left_alone(home: Path, victim: Path) -> None:
    place = home / "logs" / "tree" / "inside" / "mounted"
    place.mkdir(parents=True)
    (home / "logs" / "tree" / "file").touch()
    subprocess.run(["mount", "--bind", str(victim), str(place)], check=True)
    try:
        found = removed(home, "tree")
        assert_whole(victim)
        assert [left.reason for left in found.left] == [
            "something else is mounted there"
        ]
        assert found.left[0].path.endswith("tree/inside/mounted")
    finally:
        [mounted] = (home / ASIDE).glob("*/inside/mounted")
        subprocess.run(["umount", str(mounted)], check=True)
    assert_whole(victim)


@needs_root
@pytest.mark.parametrize("mounted", ["logs", "logs/tree", ASIDE])
def test_nothing_is_removed_in_or_around_a_mount(
    home: Path, victim: Path, mounted: str
) -> None:
    (home / "logs" / "tree").mkdir()
    (home / ASIDE).mkdir()
    place = home / mounted
    subprocess.run(["mount", "--bind", str(victim), str(place)], check=True)
    try:
        if mounted == "logs/tree":
            assert removed(home, "tree").reason == "something is mounted there"
        else:
            with pytest.raises(Unsafe, match="something else is mounted there"):
                removed(home, "inner")
    finally:
        subprocess.run(["umount", str(place)], check=True)
    assert_whole(victim)
