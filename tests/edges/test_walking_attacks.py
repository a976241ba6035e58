"""Whatever is exchanged for whatever during a removal, nothing else is touched."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from itertools import product
from typing import TYPE_CHECKING

import pytest

from forge_actors.edges.cleanup.folders import Unsafe, opened_home
from forge_actors.edges.cleanup.walking import ASIDE, Remover
from tests.edges.attacks import (
    Calls,
    Victim,
    exchange,
    exchange_folder,
    fresh_home,
    make_tree,
    put_in,
    put_link,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

#: The race goes on for so many rounds, and until so many things were removed.
ROUNDS = 500
GONE = 20
#: What a class of the clean-up takes for its own.
KNOWN = ("tree", "file")


def clean(
    home: Path,
    seen: Callable[[], object] = lambda: None,
    known: Sequence[str] = KNOWN,
) -> int:
    """Visit a home as a class of the clean-up does; how many things are gone.

    `seen` is called when it has looked at what there is.
    """
    gone = 0
    try:
        with (
            opened_home(str(home)) as top,
            top.make_folder(ASIDE) as aside,
            top.folder("logs") or top.make_folder("logs") as logs,
        ):
            remover = Remover(aside)
            for _ in remover.finish():
                pass
            found = [entry for entry in logs.entries() if entry.name in known]
            seen()
            for entry in found:
                gone += remover.remove(logs, entry).gone
    except Unsafe:
        pass
    return gone


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path.resolve() / "parent" / "home"


PLACES = (
    "",
    "logs",
    ASIDE,
    "logs/tree",
    "logs/file",
    "logs/tree/inner",
    "logs/tree/inner/file",
    "logs/tree/inner/deep",
    "logs/tree/closed",
    f"{ASIDE}/*",
    f"{ASIDE}/*/inner",
    f"{ASIDE}/*/inner/file",
    f"{ASIDE}/*/inner/deep",
)


def rounds(
    home: Path, attack: Callable[[Path, Path], None], place: str, *, late: bool = False
) -> Iterator[Victim]:
    """Clean with the attack before each call of the system, one after the other.

    `late`: only before those that come when the home has been looked at.
    """

    def run(patch: pytest.MonkeyPatch, at: int, act: Callable[[], None]) -> Calls:
        fresh_home(home)
        calls = Calls(at, act)
        if late:
            clean(home, lambda: calls.listen(patch))
        else:
            calls.listen(patch)
            clean(home)
        return calls

    with pytest.MonkeyPatch.context() as patch:
        count = run(patch, -1, lambda: None).count
    assert count > 20
    for at in range(count):
        with Victim(home.parents[1] / f"victim{at}") as victim:

            def act() -> None:
                spot = min(home.glob(place), default=None) if place else home
                if spot is not None:
                    is_file = spot.is_file()
                    attack(spot, victim.file if is_file else victim.folder)

            with pytest.MonkeyPatch.context() as patch:
                run(patch, at, act)
            yield victim


def test_without_an_attack_all_of_it_goes(home: Path) -> None:
    assert clean(fresh_home(home)) == len(KNOWN)
    assert [path.name for path in home.rglob("*")] == ["removing", "logs"]


@pytest.mark.parametrize("place", PLACES)
def test_a_link_at_any_place_and_any_moment_leads_nowhere(
    home: Path, place: str
) -> None:
    for victim in rounds(home, put_link, place):
        victim.assert_whole()


@pytest.mark.parametrize(
    ("place", "attack"),
    [
        *product(("logs", ASIDE, "logs/tree", "logs/file"), (exchange, put_in)),
        # Of a file that lies aside it could be so between the last look and the end.
        (f"{ASIDE}/*", exchange_folder),
    ],
)
def test_what_takes_the_place_of_something_seen_is_not_taken_for_it(
    home: Path, place: str, attack: Callable[[Path, Path], None]
) -> None:
    for victim in rounds(home, attack, place, late=True):
        victim.assert_whole()
        # Nor does the next one take it for something that was moved aside.
        clean(home, known=())
        victim.assert_whole()


class Killed(BaseException):
    """As the end of the program at this moment."""


def test_a_clean_up_that_is_killed_at_any_moment_is_ended_by_the_next(
    home: Path,
) -> None:
    def die() -> None:
        raise Killed

    killed = 0
    while True:
        fresh_home(home)
        with pytest.MonkeyPatch.context() as patch:
            Calls(killed, die).listen(patch)
            try:
                clean(home)
            except Killed:
                killed += 1
            else:
                break
        clean(home)
        assert [path.name for path in home.rglob("*")] == ["removing", "logs"]
    assert killed > 30


#: Exchanges names for links, over and over, until it is ended. It follows none of them
#: itself: the victim's own folders are not what it is to put into the home.
SWAPS = """
import ctypes, os, sys
home, victim = map(os.fsencode, sys.argv[1:])
libc = ctypes.CDLL(None)
place, name = os.path.split(home)
link = home + b"-link"
down = [name, b"logs", b"tree", b"inner", b"deep"]
folder = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
def exchange_at_depth(depth):
    opened = [os.open(place, folder)]
    try:
        for part in down[:depth]:
            opened.append(os.open(part, folder, dir_fd=opened[-1]))
        libc.renameat2(opened[-1], down[depth], -100, link, 2)
    except OSError:
        pass
    for fd in opened:
        os.close(fd)
os.symlink(victim, link)
print("ready", flush=True)
while True:
    for depth in range(len(down)):
        exchange_at_depth(depth)
        exchange_at_depth(depth)
        try:
            os.symlink(victim, link)
        except OSError:
            pass
"""


def test_a_program_that_swaps_all_the_time_wins_nothing(home: Path) -> None:
    fresh_home(home)
    logs = os.open(home / "logs", os.O_RDONLY)
    with (
        Victim(home.parents[1] / "victim") as victim,
        subprocess.Popen(
            [sys.executable, "-c", SWAPS, str(home), str(victim.folder)],
            stdout=subprocess.PIPE,
        ) as swaps,
    ):
        try:
            assert swaps.stdout is not None
            assert swaps.stdout.readline() == b"ready\n"
            gone = rounds = 0
            while rounds < ROUNDS or gone < GONE:
                rounds += 1
                gone += clean(home)
                victim.assert_whole()
                made = home.parents[1] / f"made{rounds}"
                make_tree(made)
                with suppress(OSError):  # the last one is there still
                    os.rename(made, "tree", dst_dir_fd=logs)
        finally:
            swaps.kill()
            os.close(logs)
