"""A stage with a program that plays an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.agents.finding import adapter
from forge_actors.testing.agents import install
from forge_actors.testing.agents.running import Ran, environment, running

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from forge_actors.testing.agents_contract import Scene

#: What each has printed when it is in the middle of its work.
AT_WORK = {
    "claude": b"I begin.",
    "codex": b"turn.started",
    "copilot": b"model.call_start",
}


class FakeStage:
    """See `agents_contract.Stage`."""

    def __init__(self, folder: Path, name: str) -> None:
        self.adapter = adapter(name)
        self.fake = install(folder / "bin", name)
        self.program = self.fake.path
        self.folder = folder
        self.env = environment(folder, TZ="UTC")
        self.arguments: tuple[str, ...] = ()

    def play(self, scene: Scene) -> None:
        self.fake.play(scene)

    async def at_work(self, ran: Ran) -> None:
        await ran.printed(AT_WORK[self.adapter.name])

    def let_go(self) -> None:
        """It goes on by itself, if at all."""

    def running(self, prompt: str) -> AbstractAsyncContextManager[Ran]:
        return running(
            self.adapter, self.program, prompt, cwd=self.folder, env=self.env
        )

    async def run(self, prompt: str = "Say done.") -> Ran:
        async with self.running(prompt) as ran:
            pass
        return ran
