"""The release of a program, and the file that says which one serves a home."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

import forge_actors
from forge_actors.domain.errors import InvalidInput, ReleaseDamaged, ReleaseRefused
from forge_actors.domain.releases import Release
from forge_actors.runtime.release import (
    RELEASE_FILE,
    activate,
    may_serve,
    read_active,
    this_release,
)

PACKAGE = Path(forge_actors.__file__).parent


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "home"
    folder.mkdir(mode=0o700)
    return folder


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The files of this program in another place."""
    place = tmp_path / "other" / "forge_actors"
    shutil.copytree(PACKAGE, place, ignore=shutil.ignore_patterns("__pycache__"))
    return place


def release(name: str, folder: Path) -> Release:
    digest = name.encode().hex().ljust(64, "0")
    return Release("1.0", digest, str(folder / name))


# What a release is


def test_the_same_files_are_the_same_release_wherever_they_are(copy: Path) -> None:
    here, there = this_release(), this_release(copy)
    assert (here.id, here.path, there.path) == (there.id, str(PACKAGE), str(copy))
    assert here.id.startswith(f"{forge_actors.__version__}-")
    assert len(here.id.rpartition("-")[2]) == 16


@pytest.mark.parametrize(
    "change",
    [
        lambda root: (root / "__main__.py").write_text("pass\n"),
        lambda root: (root / "domain" / "extra.py").touch(),
        lambda root: (root / "domain" / "jobs.py").unlink(),
        lambda root: (root / "domain/jobs.py").rename(root / "domain/work.py"),
        lambda root: next(root.rglob("*.sql")).write_text("-- nothing\n"),
    ],
)
def test_any_other_content_is_another_release(copy: Path, change: Any) -> None:
    before = this_release(copy)
    change(copy)
    assert this_release(copy).id != before.id


def test_what_python_makes_of_the_files_is_no_part_of_it(copy: Path) -> None:
    before = this_release(copy)
    command = [sys.executable, "-m", "compileall", "-q", str(copy / "domain")]
    subprocess.run(command, check=True)
    assert this_release(copy) == before


def test_a_link_to_a_release_is_that_release(copy: Path, tmp_path: Path) -> None:
    (tmp_path / "current").symlink_to(copy)
    assert this_release(tmp_path / "current") == this_release(copy)


# The active one


def test_the_first_release_that_serves_is_the_active_one(home: Path) -> None:
    mine = this_release()
    active, new = may_serve(home, mine)
    assert (active.revision, active.release, new) == (1, mine, True)
    assert active.previous is None
    path = home / RELEASE_FILE
    assert path.stat().st_mode & 0o777 == 0o600
    assert read_active(home) == active
    assert may_serve(home, mine) == (active, False)
    assert sorted(path.name for path in home.iterdir()) == [
        RELEASE_FILE,
        "release.lock",
    ]


def test_an_upgrade_in_its_place_serves_at_once(home: Path, tmp_path: Path) -> None:
    old = release("a", tmp_path)
    Path(old.path).mkdir()
    before, _ = may_serve(home, old)
    upgraded = structs.replace(old, digest="ff" * 32)
    active, new = may_serve(home, upgraded)
    assert (active.revision, active.release, new) == (2, upgraded, True)
    assert active.previous == old
    assert active.token_digest != before.token_digest


def test_another_place_serves_only_when_the_active_one_is_gone(
    home: Path, tmp_path: Path
) -> None:
    one, other = release("a", tmp_path), release("b", tmp_path)
    Path(one.path).mkdir()
    may_serve(home, one)
    content = (home / RELEASE_FILE).read_bytes()
    with pytest.raises(ReleaseRefused) as refused:
        may_serve(home, other)
    said = str(refused.value)
    assert refused.value.exit_code == 3
    for words in (str(one), str(other), "forge-actors release activate"):
        assert words in said
    assert (home / RELEASE_FILE).read_bytes() == content
    Path(one.path).rmdir()
    active, new = may_serve(home, other)
    assert (active.revision, active.previous, new) == (2, one, True)


def test_activating_changes_what_may_serve(home: Path, tmp_path: Path) -> None:
    one, other = release("a", tmp_path), release("b", tmp_path)
    for folder in (one.path, other.path):
        Path(folder).mkdir()
    may_serve(home, one)
    active, changed = activate(home, other)
    assert (active.revision, active.previous, changed) == (2, one, True)
    assert activate(home, other) == (active, False)
    with pytest.raises(ReleaseRefused):
        may_serve(home, one)
    back, _ = activate(home, one)
    assert (back.revision, back.previous) == (3, other)


# Strictly


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "\xff\xfe",
        lambda text: text.replace('"revision":1', '"revision":0'),
        lambda text: text.replace('"revision":1', '"revision":"1"'),
        lambda text: text.replace('"format":1', '"format":2'),
        lambda text: text.replace('"format":1', '"format":1,"x":1'),
        lambda text: text.replace('"digest":"', '"digest":"zz'),
        lambda text: text.replace('"previous":null', '"previous":{}'),
        lambda text: text.replace(',"previous":null', ""),
        lambda text: text + " " * 65536 + "x",
    ],
)
def test_a_file_that_is_not_ours_is_refused_and_left_alone(
    home: Path, damage: Any
) -> None:
    may_serve(home, this_release())
    path = home / RELEASE_FILE
    text = path.read_text()
    damaged = damage(text)
    assert damaged != text
    path.write_text(damaged, encoding="latin-1")
    before = path.read_bytes()
    for step in (may_serve, activate):
        with pytest.raises(ReleaseDamaged, match="move it away") as refused:
            step(home, this_release())
        assert refused.value.exit_code == 3
        assert str(path) in str(refused.value)
    assert path.read_bytes() == before
    path.unlink()
    assert activate(home, this_release())[0].revision == 1


@pytest.mark.parametrize("kind", ["folder", "pipe", "link", "writable"])
def test_what_is_no_private_file_is_refused(home: Path, kind: str) -> None:
    may_serve(home, this_release())
    path = home / RELEASE_FILE
    if kind == "writable":
        path.chmod(0o666)
    else:
        path.rename(home / "elsewhere")
        if kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to("elsewhere")
    with pytest.raises(ReleaseDamaged):
        activate(home, this_release())


def test_a_write_that_fails_changes_nothing(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, _ = may_serve(home, this_release())

    def no_space(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", no_space)
    with pytest.raises(InvalidInput, match="No space left"):
        activate(home, release("b", tmp_path))
    assert read_active(home) == before
    assert sorted(path.name for path in home.iterdir()) == [
        RELEASE_FILE,
        "release.lock",
    ]


def test_activations_at_once_each_count(home: Path, tmp_path: Path) -> None:
    code = """
import sys
from pathlib import Path
from forge_actors.domain.releases import Release
from forge_actors.runtime.release import activate
for turn in range(20):
    digest = f"{sys.argv[2]}{turn:02d}".encode().hex().ljust(64, "0")
    activate(Path(sys.argv[1]), Release("1.0", digest, "/x"))
"""
    words = [[sys.executable, "-c", code, str(home), str(n)] for n in range(4)]
    for process in [subprocess.Popen(command) for command in words]:
        assert process.wait() == 0
    active = read_active(home)
    assert active is not None
    assert active.revision == 80


def test_the_token_itself_is_kept_nowhere(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = bytes(range(32))
    monkeypatch.setattr("secrets.token_bytes", lambda _: token)
    active, _ = may_serve(home, this_release())
    kept = json.loads((home / RELEASE_FILE).read_text())
    assert kept["token_digest"] == active.token_digest
    assert token.hex() not in (home / RELEASE_FILE).read_text()
