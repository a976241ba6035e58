"""What the tests of GitHub share: a reader of a world, and waits that take no time."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.github.reader import GitHubReader
from forge_actors.edges.github.tokens import Tokens
from forge_actors.testing.github import World, serving

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator

    from forge_actors.testing.github.faults import Troubles
    from forge_actors.testing.github.server import GitHubServer

TOKEN = "github_pat_testtesttesttesttest"


class Bench:
    """A server, a reader of it, and for how long that would have waited."""

    def __init__(
        self, server: GitHubServer, context: ssl.SSLContext | None, seconds: float
    ) -> None:
        self.server = server
        self.world: World = server.world
        self.demo, self.other = list(server.world.repositories.values())
        self.waited: list[float] = []
        self.tokens = Tokens({"GH_TOKEN": TOKEN, "PATH": ""})
        self.reader = GitHubReader(
            self.tokens,
            server.base,
            context=context,
            seconds=seconds,
            wall=lambda: self.world.now,
            sleep=self._sleep,
        )

    @property
    def troubles(self) -> Troubles:
        return self.server.troubles

    async def _sleep(self, seconds: float) -> None:
        self.waited.append(seconds)
        await trio.lowlevel.checkpoint()


def world_of_two() -> World:
    world = World()
    world.repository("octo", "demo", private=True)
    world.repository("octo", "other")
    world.token(TOKEN)
    return world


@asynccontextmanager
async def bench(
    *,
    prefix: str = "",
    served: ssl.SSLContext | None = None,
    trusted: ssl.SSLContext | None = None,
    seconds: float = 30.0,
) -> AsyncIterator[Bench]:
    async with serving(world_of_two(), prefix=prefix, context=served) as server:
        made = Bench(server, trusted, seconds)
        try:
            yield made
        finally:
            await made.reader.close()
