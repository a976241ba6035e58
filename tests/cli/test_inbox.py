"""`inbox` in front of a service."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.domain.inbox import Item
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def item(name: str) -> Item:
    return Item(
        id=f"job:{name}",
        kind="job",
        says="job ended\x1b[31m, and a person has to look",
        since="1970-01-01T00:00:30.000Z",
        repo="app",
        job=name,
        evidence={"code": "INTERRUPTED"},
        actions=[f"forge-actors retry {name}"],
    )


async def test_items_are_shown_with_what_to_type_and_dismissed(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        nothing = (0, "", "forge-actors: nothing needs you\n")
        assert await shell("inbox") == nothing
        control.inbox_items = [item("first"), item("second")]
        status, out, err = await shell("inbox")
        assert (status, err) == (0, "")
        assert "\x1b" not in out
        assert out.count("job:") == 2
        assert "    code: INTERRUPTED\n  $ forge-actors retry first\n" in out
        _, out, _ = await shell("inbox", "list", "--json")
        assert [each["job"] for each in json.loads(out)["items"]] == ["first", "second"]

        assert await shell("inbox", "dismiss", "first") == (0, "job:first\n", "")
        status, out, err = await shell("inbox", "dismiss", "first")
        assert (status, out) == (2, "")
        assert "nothing in the inbox is called 'first'" in err
        assert "job:first" not in (await shell("inbox"))[1]


async def test_more_than_can_be_shown_is_counted(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.inbox_items = [item(f"job{number:03}") for number in range(130)]
        _, out, err = await shell("inbox")
        assert out.count("\njob:") == 99
        assert "and 30 more" in err
