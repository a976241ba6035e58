"""Every reader of GitHub keeps the contract: over HTTP, and the one for tests."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.github import FakeGitHub
from forge_actors.testing.github_contract import CHECKS, Ground
from tests.edges.github_kit import bench, world_of_two

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from forge_actors.testing.github_contract import Check, Open


@asynccontextmanager
async def over_http() -> AsyncIterator[Ground]:
    async with bench() as made:
        yield Ground(made.reader, made.world, made.demo, made.other)


@asynccontextmanager
async def of_a_company() -> AsyncIterator[Ground]:
    async with bench(prefix="/api/v3") as made:
        made.world.limits = False
        yield Ground(made.reader, made.world, made.demo, made.other)


@asynccontextmanager
async def in_process() -> AsyncIterator[Ground]:
    world = world_of_two()
    demo, other = world.repositories.values()
    yield Ground(FakeGitHub(world), world, demo, other)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("open_", [over_http, of_a_company, in_process])
async def test_every_reader_keeps_the_contract(check: Check, open_: Open) -> None:
    await check(open_)
