"""Agent programs that play a scene: real executables, without a model and an account.

Each behaves like the program whose name it has, to the exit status and what it makes of
a signal. They are for our own tests and for those of whoever embeds us:

    folder = Path(...)                        # put it on the PATH
    claude = install(folder, "claude")
    claude.play("limit", reset=1_796_030_000)  # from now on

A prompt with a line such as `scene: {"name": "works"}` has a scene of its own.
"""

from forge_actors.testing.agents.installing import NAMES, FakeAgent, install

__all__ = ["NAMES", "FakeAgent", "install"]
