"""A GitHub for tests: repositories and issues, and a server that tells of them.

    world = World()
    demo = world.repository("octo", "demo")
    seven = world.issue(demo, 7)
    async with serving(world) as server:
        ...  # server.base is what GITHUB_API_URL would be

`python -m forge_actors.testing.github` serves one to other programs.
"""

from forge_actors.testing.github.reader import FakeGitHub as FakeGitHub
from forge_actors.testing.github.server import serving as serving
from forge_actors.testing.github.world import World as World

#: As programs of others know them, see `forge_actors.testing`.
GitHubWorld = World
fake_github = serving
