"""A service notices by itself, or when told, that another release is to serve."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trio
from msgspec import structs

from forge_actors.runtime.release import RELEASE_FILE, activate, this_release
from forge_actors.runtime.served_release import ServedRelease, serve_release

if TYPE_CHECKING:
    from forge_actors.domain.releases import ActiveRelease


@pytest.fixture
def served(tmp_path: Path) -> ServedRelease:
    return serve_release(tmp_path, this_release())


def another(folder: Path) -> ActiveRelease:
    other = structs.replace(this_release(), digest="ff" * 32, path="/opt/other")
    return activate(folder, other)[0]


async def test_an_activation_is_noticed_without_a_look(
    tmp_path: Path, served: ServedRelease
) -> None:
    seen: list[tuple[ActiveRelease, str]] = []
    served.superseded = lambda active: seen.append((active, served.coherence))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.watch)
        await trio.testing.wait_all_tasks_blocked()
        (tmp_path / "noise").write_text("x")
        assert (served.coherence, seen) == ("pass", [])
        active = another(tmp_path)
    # It does not pass any more when the others learn of it.
    assert seen == [(active, "fail")]
    served.check()
    assert len(seen) == 1


async def test_an_activation_before_the_watch_is_noticed_when_it_begins(
    tmp_path: Path, served: ServedRelease
) -> None:
    active = another(tmp_path)
    await served.watch()
    assert served.successor == active


async def test_the_same_release_made_active_anew_ends_the_service_too(
    tmp_path: Path, served: ServedRelease
) -> None:
    another(tmp_path)
    activate(tmp_path, this_release())
    served.check()
    assert served.successor is not None
    assert served.successor.release == served.release


async def test_where_the_system_does_not_tell_a_look_finds_it(
    tmp_path: Path,
    served: ServedRelease,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr("sys.platform", "other")
    async with trio.open_nursery() as nursery:
        nursery.start_soon(served.watch)
        await trio.testing.wait_all_tasks_blocked()
        another(tmp_path)
        await trio.testing.wait_all_tasks_blocked()
        assert served.coherence == "pass"
        served.check()
        assert served.coherence == "fail"
        nursery.cancel_scope.cancel()
    assert "cannot be watched here" in caplog.text


@pytest.mark.parametrize("damage", ["gone", "nonsense"])
async def test_a_file_that_says_nothing_supersedes_nobody(
    tmp_path: Path,
    served: ServedRelease,
    damage: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    path = tmp_path / RELEASE_FILE
    kept = path.read_bytes()
    path.unlink()
    if damage == "nonsense":
        path.write_text("{")
    for _ in range(3):
        served.check()
    assert (served.coherence, served.successor) == ("not_observed", None)
    said = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert len(said) == (damage == "nonsense")
    path.write_bytes(kept)
    served.check()
    assert served.coherence == "pass"
