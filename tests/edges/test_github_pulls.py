"""Pull requests: looked for before one is opened, and opened once."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.github.places import Place
from forge_actors.edges.github.pulls import GitHubPullRequests
from forge_actors.edges.github.tokens import Tokens
from tests.edges.github_kit import TOKEN, Bench, bench

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

DEMO = Place("127.0.0.1", "octo", "demo")
BRANCH = "forge/epic-7/issue-12"
WORDS = ("Say hello", "Closes #12.\n")


@asynccontextmanager
async def pulls(
    *, writable: bool = True
) -> AsyncIterator[tuple[Bench, GitHubPullRequests]]:
    async with bench() as github:
        github.server.routes.writable = writable
        github.world.branches.add(BRANCH)
        tokens = Tokens(
            {"GH_ENTERPRISE_TOKEN": TOKEN, "PATH": ""}, named=("127.0.0.1",)
        )
        made = GitHubPullRequests("127.0.0.1", tokens, github.server.base)
        try:
            yield github, made
        finally:
            await made.close()


async def test_a_draft_is_opened_for_the_default_branch_and_found_again() -> None:
    async with pulls() as (github, made):
        assert await made.find(DEMO, BRANCH) is None
        number = await made.open_draft(DEMO, BRANCH, None, *WORDS)
        [there] = github.world.pulls
        assert (there.number, there.draft, there.base) == (number, True, "main")
        assert (there.title, there.body) == WORDS
        assert await made.find(DEMO, BRANCH) == number
        assert await made.find(DEMO, "main") is None
        there.state = "closed"
        assert await made.find(DEMO, BRANCH) == number, "a closed one is one too"


async def test_a_second_one_and_one_without_its_branch_are_refused_for_good() -> None:
    async with pulls() as (github, made):
        await made.open_draft(DEMO, BRANCH, "main", *WORDS)
        for branch, base in ((BRANCH, "main"), ("none", "main"), (BRANCH, "none")):
            with pytest.raises(GitHubFailed) as caught:
                await made.open_draft(DEMO, branch, base, *WORDS)
            assert not caught.value.transient
        assert len(github.world.pulls) == 1


async def test_nothing_is_written_where_nobody_has_allowed_it() -> None:
    async with pulls(writable=False) as (github, made):
        with pytest.raises(GitHubFailed, match="405"):
            await made.open_draft(DEMO, BRANCH, "main", *WORDS)
        assert github.world.pulls == []


async def test_what_was_not_heard_of_is_not_asked_again_by_itself() -> None:
    async with pulls() as (github, made):
        github.troubles.fault("/pulls$", hang_up=True)
        with pytest.raises(GitHubFailed) as caught:
            await made.open_draft(DEMO, BRANCH, "main", *WORDS)
        assert caught.value.transient
        assert len(github.world.pulls) == 1, "it was done, and nobody said so"
        assert [each.method for each in github.troubles.log] == ["POST"]


async def test_a_long_title_is_cut_and_a_moved_repository_is_not_followed() -> None:
    async with pulls() as (github, made):
        await made.open_draft(DEMO, BRANCH, "main", "t" * 999, "")
        assert len(github.world.pulls[0].title) == 256
        github.world.rename(github.demo, "renamed")
        with pytest.raises(GitHubFailed, match="moved"):
            await made.open_draft(DEMO, BRANCH, "main", *WORDS)


ANSWERS: list[Any] = [
    *("{", "[" * 100_000, {}, [{}], [None], {"number": True}, {"number": 0}),
    *({"number": "501"}, {"number": 2**40}, 3),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: str(answer)[:20])
async def test_an_answer_that_makes_no_sense_is_refused(answer: Any) -> None:
    async with pulls() as (github, made):
        github.troubles.fault("/pulls$", times=9, status=200, body=answer)
        with pytest.raises(GitHubFailed) as caught:
            await made.open_draft(DEMO, BRANCH, "main", *WORDS)
        assert caught.value.kind == "malformed"
        if not isinstance(answer, list):
            with pytest.raises(GitHubFailed):
                await made.find(DEMO, BRANCH)
        else:
            assert await made.find(DEMO, BRANCH) is None
