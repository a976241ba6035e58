"""Plans in files: read anew each time, whoever writes them meanwhile."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.epic.plan_file import MAX_FILE_BYTES
from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime import epic_plan
from forge_actors.runtime.epic_plan import PlanGraph, plan_key, read_files
from forge_actors.testing.epic.graph_contract import refusal
from forge_actors.testing.epic.graph_people import PlanPeople

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_file_that_is_just_being_saved_is_read_once_more(
    tmp_path: Path,
) -> None:
    people = PlanPeople(tmp_path / "plan.toml")
    people.add(1)
    slept = []

    async def saved(seconds: float) -> None:
        slept.append(seconds)
        people.save()

    graph = PlanGraph(people.path, sleep=saved)
    people.path.write_text("title = ")
    assert len((await graph.snapshot()).children) == 1
    people.path.unlink()
    assert len((await graph.snapshot()).children) == 1
    assert len(slept) == 2


async def test_a_plan_that_is_not_there_says_so(tmp_path: Path) -> None:
    async def nothing(seconds: float) -> None:
        pass

    graph = PlanGraph(tmp_path / "plan.toml", sleep=nothing)
    error = await refusal(graph.repository())
    assert (error.reason, error.transient) == ("not-found", False)
    assert str(error) == f"there is no {tmp_path / 'plan.toml'}"
    people = PlanPeople(tmp_path / "plan.toml")
    await graph.epic()
    people.path.write_text("number = 5")
    error = await refusal(graph.snapshot())
    assert "its number was 1000 and is 5" in str(error)


def test_a_plan_is_the_same_in_each_worktree_and_by_each_name(tmp_path: Path) -> None:
    for checkout in ("one", "two"):
        folder = tmp_path / checkout / "plans"
        folder.mkdir(parents=True)
        (folder / "a.toml").write_text("")
    (tmp_path / "one" / ".git").mkdir()
    (tmp_path / "two" / ".git").write_text("gitdir: ../one/.git/worktrees/two")
    (tmp_path / "alias.toml").symlink_to("one/plans/a.toml")
    keys = {plan_key(tmp_path / name / "plans" / "a.toml") for name in ("one", "two")}
    assert keys == {"plans/a.toml"} == {plan_key(tmp_path / "alias.toml")}
    loose = tmp_path / "loose.toml"
    assert plan_key(loose) == str(loose)


def test_a_folder_is_read_with_all_its_files(tmp_path: Path) -> None:
    (tmp_path / "1.md").write_bytes(b"\xef\xbb\xbf# One\r\n\r\nText.\r\n")
    (tmp_path / "2.toml").write_text('title = "Two"\nblocked_by = [1]')
    (tmp_path / "README.md").write_text("no issue")
    (tmp_path / "deeper").mkdir()
    found = read_files(tmp_path)
    assert [(each.title, each.body) for each in found.issues] == [
        *(("One", "Text.\n"), ("Two", "")),
    ]


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_plain_file_in_a_folder_is_refused(
    tmp_path: Path, kind: str
) -> None:
    place = tmp_path / "1.toml"
    if kind == "link":
        (tmp_path / "elsewhere").write_text('title = "One"')
        place.symlink_to("elsewhere")
    elif kind == "fifo":
        os.mkfifo(place)
    else:
        place.mkdir()
    with pytest.raises((InvalidInput, OSError)):
        read_files(tmp_path)


def test_no_more_is_read_than_a_plan_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in (1, 2):
        (folder / f"{number}.md").write_text("# A title of 20 b.")
    assert len(read_files(folder).issues) == 2
    monkeypatch.setattr(epic_plan, "MAX_BYTES", 30)
    with pytest.raises(InvalidInput, match=r"2.md: is larger than 12 bytes"):
        read_files(folder)
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * (MAX_FILE_BYTES + 1))
    with pytest.raises(InvalidInput, match=r"large.toml: is larger than 1048576 bytes"):
        read_files(large)
    odd = tmp_path / "odd.toml"
    odd.write_bytes(b'title = "a"\n# \xff')
    with pytest.raises(InvalidInput, match=r"odd.toml:2: is no UTF-8"):
        read_files(odd)
