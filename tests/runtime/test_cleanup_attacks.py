"""Links at every name that the clean-up visits, before it and at any moment of it."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.cleaning import CLASSES
from forge_actors.edges.cleanup.walking import ASIDE
from forge_actors.runtime.homes import FOLDERS, REMOVED_LOG, STORE_FILE
from tests.edges.attacks import Calls, Victim, put_link
from tests.runtime.cleanup_home import DAY, Home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.runtime.cleanup_home import Owner

#: Late enough for everything to go.
LATER = 400 * DAY
REMOVED = 1.0
#: Moments of a run at which each name is attacked.
ROUNDS = 20


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def victim(place: Path) -> Iterator[Victim]:
    with Victim(place / "victim") as made:
        yield made


def full_home(path: Path) -> Home:
    """One with something to remove in every class."""
    home = Home(path)
    home.job("old", 40 * DAY, output=1)
    home.log("lost")
    home.repository("gone", removed_at=REMOVED)
    for name in (
        "artifacts/old/report/page.html",
        "artifacts/lost/file",
        "settings.toml.new",
        "receipts/1.jsonl.new",
        "secrets/token.1.new",
        "importing/store.sqlite",
        "restoring/folder/file",
        "clones/half/.git/HEAD",
        "replaced/store-20200101T000000Z.sqlite",
        "replaced/store-20200102T000000Z.sqlite",
        "damaged/store-20200101T000000Z.sqlite-wal",
        "damaged/store-20200102T000000Z.sqlite",
        "films/long.mkv",
    ):
        file = path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    (path / "worktrees" / "gone").mkdir(parents=True)
    return home


def clean(home: Home) -> Owner:
    return home.run(later=LATER)


def every_name(home: Home) -> list[str]:
    """Each name in the home, and those of folders that are not there yet.

    Not of the files of the store: these are opened by their owner alone.
    """
    found = {str(path.relative_to(home.path)) for path in home.path.rglob("*")}
    found |= {*FOLDERS, REMOVED_LOG}
    return sorted(name for name in found if not name.startswith(STORE_FILE))


def test_without_an_attack_every_class_has_something_to_remove(place: Path) -> None:
    home = full_home(place / "home")
    found = clean(home)
    removed = {
        report.clean_class for report in found.reports.values() if report.removed
    }
    none = {"events", "worktrees", "preserved", "store", "other"}
    assert removed == set(CLASSES) - none
    assert (home.path / "films" / "long.mkv").exists()


def test_a_link_planted_at_any_name_leads_nowhere(place: Path, victim: Victim) -> None:
    names = every_name(full_home(place / "home"))
    assert len(names) > 30
    for number, name in enumerate(names):
        home = full_home(place / f"home{number}")
        target = home.path / name
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.parent.mkdir(exist_ok=True)
        folder = "." not in target.name or number % 2
        target.symlink_to(victim.folder if folder else victim.file)
        clean(home)
        victim.assert_whole()


def test_a_link_in_place_of_a_folder_around_the_home_leads_nowhere(
    place: Path, victim: Victim
) -> None:
    home = full_home(place / "around" / "home")
    shutil.copytree(home.path, victim.folder / "home", symlinks=True)
    before = sorted(path.name for path in (victim.folder / "home").rglob("*"))
    (place / "around").rename(place / "away")
    (place / "around").symlink_to(victim.folder)
    found = clean(home)
    after = sorted(path.name for path in (victim.folder / "home").rglob("*"))
    # What it wrote down of its own is no removal.
    assert [name for name in after if not name.startswith(("removed", "store"))] == [
        name for name in before if not name.startswith("store")
    ]
    assert found.removals == []
    assert {report.failed for report in found.reports.values()} >= {1}


@pytest.mark.parametrize(
    "name",
    [
        *("", "logs", "artifacts", ASIDE, "importing", "receipts", "replaced"),
        *("logs/old.1.stdout", "logs/lost.1.stdout", "artifacts/old", "artifacts/lost"),
        *("artifacts/old/report", "importing/store.sqlite", "restoring/folder"),
        *("worktrees", "worktrees/gone", "clones", "clones/half", "films"),
        "replaced/store-20200101T000000Z.sqlite",
    ],
)
def test_a_link_put_there_at_any_moment_leads_nowhere(place: Path, name: str) -> None:
    calls = rounds = 0
    with pytest.MonkeyPatch.context() as patch:
        listening = Calls(-1, lambda: None)
        home = full_home(place / "first")
        listening.listen(patch)
        clean(home)
        calls = listening.count
    assert calls > 150
    template = full_home(place / "template")
    # All moments take minutes, and what every class does is tried at each one.
    for at in range(0, calls, calls // ROUNDS):
        path = place / "homes" / f"home{at}"
        shutil.copytree(template.path, path, symlinks=True)
        home = template.at(path)
        with Victim(place / "victims" / f"victim{at}") as victim:
            attack = planting(path / name, victim)
            with pytest.MonkeyPatch.context() as patch:
                Calls(at, attack).listen(patch)
                clean(home)
            victim.assert_whole()
        shutil.rmtree(place / "homes")
        rounds += 1
    assert rounds >= ROUNDS


def planting(spot: Path, victim: Victim) -> Callable[[], None]:
    def attack() -> None:
        if os.path.lexists(spot):
            is_file = spot.is_file() and not spot.is_symlink()
            put_link(spot, victim.file if is_file else victim.folder)

    return attack
