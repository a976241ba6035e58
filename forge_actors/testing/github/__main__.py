"""Serve a GitHub for tests, filled from a file of JSON if one is named."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import trio

from forge_actors.testing.github.control import seed
from forge_actors.testing.github.server import serving
from forge_actors.testing.github.world import World


async def serve(world: World, prefix: str) -> None:
    async with serving(world, prefix=prefix) as server:
        print(server.base, flush=True)
        await trio.sleep_forever()


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m forge_actors.testing.github", description=__doc__
    )
    parser.add_argument("seed", nargs="?", type=Path, help="what there is, in JSON")
    parser.add_argument("--prefix", default="", help="such as /api/v3")
    args = parser.parse_args()
    world = World()
    if args.seed is not None:
        seed(world, json.loads(args.seed.read_text()))
    trio.run(serve, world, args.prefix)


if __name__ == "__main__":
    main()
