"""Run a command in several git repositories at once, within limits.

python examples/embed.py "make test" ~/src/app ~/src/lib
"""

import shlex
import sys
from pathlib import Path

import trio

from forge_actors import JobHandle, Runtime, open_runtime


async def run_everywhere(runtime: Runtime, argv: list[str], repos: list[Path]) -> bool:
    """Whether the command succeeded in all of them; tells of each as it ends."""
    good = []

    async def follow(repo: Path, job: JobHandle) -> None:
        view, errors = await job.wait(), await job.read("stderr")
        good.append(view.state == "succeeded")
        print(f"{repo.name}: {view.state}", errors.decode(errors="replace"))

    async with trio.open_nursery() as nursery:
        for repo in repos:
            job = await runtime.submit(repo, argv, timeout="30m")
            nursery.start_soon(follow, repo, job)
    return all(good)


async def main(command: str, *folders: str) -> int:
    async with open_runtime(settings={"limits": {"workers": 4}}) as runtime:
        repos = [Path(folder) for folder in folders]
        return not await run_everywhere(runtime, shlex.split(command), repos)


if __name__ == "__main__":
    sys.exit(trio.run(main, *sys.argv[1:]) if len(sys.argv) > 2 else __doc__)
