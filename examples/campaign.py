"""The same change or check in many repositories: one first, then some at once.

    python examples/campaign.py "make lint" ~/src/*

The first one is the canary: if it fails nothing else begins. After three failures
nothing new begins either, and what is left out is told.
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import trio

from forge_actors import Runtime, WorkflowView, open_runtime


async def campaign(
    runtime: Runtime, argv: list[str], repos: list[Path]
) -> WorkflowView:
    names = [(await runtime.add_repository(repo)).name for repo in repos]
    handle = await runtime.run_workflow(
        "campaign",
        kind="campaign",
        canary=1,
        parallel=4,
        stop_after=3,
        items={"list": names},
        template={"repo": "${item}", "job": {"argv": argv, "timeout": "10m"}},
    )
    return await handle.wait()


async def main(command: str, *folders: str) -> int:
    async with open_runtime() as runtime:
        view = await campaign(runtime, shlex.split(command), [*map(Path, folders)])
    for step in view.steps:
        print(f"{step.name}: {step.state}")
    return 0 if view.state == "succeeded" else 1


if __name__ == "__main__":
    sys.exit(trio.run(main, *sys.argv[1:]) if len(sys.argv) > 2 else __doc__)
