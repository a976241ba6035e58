"""`release`: what it shows, and what it changes, with and without a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from msgspec import structs

from forge_actors.runtime.release import RELEASE_FILE, activate, this_release
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


async def test_a_home_that_nobody_served_has_no_active_release(shell: Shell) -> None:
    status, out, err = await shell("release", "show")
    assert (status, this_release().id in out) == (0, True)
    assert "no release serves" in err
    found = json.loads((await shell("release", "show", "--json"))[1])
    mine = this_release()
    assert found == {
        "program": {"id": mine.id, "version": mine.version, "path": mine.path},
        "active": None,
        "previous": None,
        "service": None,
    }


async def test_activating_says_what_changed_and_again_that_nothing_did(
    tmp_path: Path, shell: Shell
) -> None:
    other = structs.replace(this_release(), digest="ff" * 32, path="/opt/other")
    activate(tmp_path, other)
    status, out, err = await shell("release", "activate")
    assert (status, err) == (0, "")
    assert f"{this_release()} is the active release" in out
    assert "(revision 2)" in out
    status, out, _ = await shell("release", "activate", "--json")
    answer = json.loads(out)
    assert (status, answer["changed"], answer["revision"]) == (0, False, 2)
    out = (await shell("release", "show"))[1]
    for words in (this_release().id, other.id, "/opt/other", "before it"):
        assert words in out


async def test_a_service_is_told_and_what_becomes_of_it_is_said(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        looks = []
        check = control.check_release
        control.check_release = lambda: looks.append(1) or check()  # type: ignore[method-assign, func-returns-value]
        status, _, err = await shell("release", "activate")
        assert (status, looks) == (0, [1])
        assert "hands over and exits with 75" in err
        found = json.loads((await shell("release", "show", "--json"))[1])
        assert found["service"]["pid"] == 0


@pytest.mark.parametrize("action", ["show", "activate"])
async def test_a_damaged_file_is_one_line_with_the_way_out(
    tmp_path: Path, shell: Shell, action: str
) -> None:
    (tmp_path / RELEASE_FILE).write_text("{")
    status, out, err = await shell("release", action)
    assert (status, out, err.count("\n")) == (3, "", 1)
    assert "move it away" in err
