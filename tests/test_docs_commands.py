"""Every command and snippet of the README, `docs/` and `design/` does what it says.

One service has all blocks of a page, one after the other; a block that cannot be run
says why in a comment before it, and a command in `stage.NOT_RUN`.
"""

from __future__ import annotations

import ast
import inspect
import json
import os
import tomllib
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest
import trio

import forge_actors
from forge_actors.domain import jobfile
from forge_actors.domain.forge_files import ForgeFile, read_contents
from forge_actors.domain.requests import convert
from forge_actors.runtime.epic_plan import read_files as read_plan
from tests.acceptance.conftest import limit
from tests.acceptance.service import CALL_SECONDS
from tests.docs.blocks import NO_CODE, Block, blocks_of, commands_of, pages
from tests.docs.not_run import NOT_RUN, look_at, reason_not_to_run
from tests.docs.stage import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["limit"]
WITH_CODE = [page for page in pages() if blocks_of(page)]


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with pytest.MonkeyPatch.context() as patch:
        made = Stage(patch)
        patch.chdir(made.root)
        yield made
        made.close()


@pytest.mark.parametrize("page", WITH_CODE)
def test_every_block_does_what_the_page_says(page: str, stage: Stage) -> None:
    above = ""
    for block in blocks_of(page):
        if not block.not_run and block.language not in NO_CODE:
            with stage.ready_for(block, above):
                RUN[block.language](block, stage)
        elif block.language in ("console", "sh"):
            for command in commands_of(block):
                look_at(command.text)
        above = block.text if block.language == "toml" else above


def _console(block: Block, stage: Stage) -> None:
    commands = commands_of(block)
    whole = any("=$(" in command.text for command in commands)
    if whole or block.text.startswith("#!") or "as a job" in block.clauses:
        stage.script(block)
        return
    for command in commands:
        stage.run(block, command)


def _toml(block: Block, stage: Stage) -> None:
    table = tomllib.loads(block.text)
    file = stage.app / "page.toml"
    file.write_text(block.text)
    if "template" in table and "workflow" not in table:
        read_contents([ForgeFile(file.name, block.text)])
    elif "workflow" in table:
        stage.cli("workflow", "check", file, status=0)
    elif "schedule" in table:
        stage.cli("schedule", "check", file, status=0)
    elif "job" in table:
        jobfile.check(convert(table, jobfile.JobFile))
    elif "issue" in table:
        read_plan(file)
    elif "worktree" not in table:
        stage.cli("settings", "check", file, status=0)
    file.unlink()


def _python(block: Block, stage: Stage) -> None:
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    code = compile(block.text, str(block), "exec", flags)
    names: dict[str, Any] = {"forge_actors": forge_actors, "home": None}
    if "\nasync def test_" in block.text or "\ndef test_" in block.text:
        stage.test(block)
        return
    if "\ntrio.run(" in block.text:
        exec(code, names)
        return

    async def run() -> object:
        with trio.fail_after(CALL_SECONDS):
            found = eval(code, names)
            if inspect.isawaitable(found):
                await found
            return await names["main"]() if "main" in names else None

    with mock.patch.dict(os.environ):
        view = trio.run(run)
    assert getattr(view, "state", "succeeded") == "succeeded", (str(block), view)


def _json(block: Block, stage: Stage) -> None:
    json.loads(block.text)


RUN = {
    "console": _console,
    "sh": _console,
    "toml": _toml,
    "python": _python,
    "json": _json,
}


def test_every_kind_of_block_is_known_and_every_reason_is_needed() -> None:
    blocks = [block for page in pages() for block in blocks_of(page)]
    for block in blocks:
        assert block.language in RUN or block.language in NO_CODE, str(block)
        if block.language in NO_CODE:
            assert not block.text.startswith(("$ ", "forge-actors ")), str(block)
    commands = [
        command.text
        for block in blocks
        if block.language in ("console", "sh")
        for command in commands_of(block)
    ]
    for start in NOT_RUN:
        assert any(text.startswith(start) for text in commands), start
    assert sum(reason_not_to_run(text) is None for text in commands) > 100
