"""Pull requests on a GitHub for tests: listed, and opened where that is allowed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from forge_actors.testing.github.world import PullRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.testing.github.world import Repository, World

_LIST = re.compile(
    r"/(?:repos/(?P<owner>[^/]+)/(?P<name>[^/]+)|repositories/(?P<id>[0-9]+))/pulls"
)
#: Numbers of pull requests, which issues of the tests do not have.
FIRST = 501


def is_list(path: str) -> re.Match[str] | None:
    return _LIST.fullmatch(path)


def listed(world: World, of: Repository, query: Mapping[str, str]) -> list[PullRequest]:
    """Those of a branch, the newest first; of all where `head` is not `OWNER:BRANCH`,
    as GitHub does."""
    found = [each for each in reversed(world.pulls) if each.repository == of.id]
    state, head = query.get("state", "open"), query.get("head", "")
    owner, colon, branch = head.partition(":")
    if colon:
        same = owner.lower() == of.owner.lower()
        found = [each for each in found if same and each.head == branch]
    return [each for each in found if state in ("all", each.state)]


def opened(world: World, of: Repository, body: bytes) -> PullRequest | str:
    """Open one, or why that is refused."""
    wanted = json.loads(body)
    head, base = wanted["head"], wanted["base"]
    if head not in world.branches:
        return f"head {head} is no branch"
    if base not in {"main", *world.branches}:
        return f"base {base} is no branch"
    for each in world.pulls:
        if (each.repository, each.head, each.state) == (of.id, head, "open"):
            return f"A pull request already exists for {of.owner}:{head}."
    made = PullRequest(
        FIRST + len(world.pulls),
        of.id,
        head,
        base,
        wanted["title"],
        wanted.get("body") or "",
        wanted.get("draft", False),
    )
    world.pulls.append(made)
    world.tick()
    return made


def told(of: Repository, pull: PullRequest) -> dict[str, Any]:
    repo = {"id": of.id, "full_name": of.full_name}
    return {
        "id": 70_000 + pull.number,
        "number": pull.number,
        "state": pull.state,
        "title": pull.title,
        "body": pull.body,
        "draft": pull.draft,
        "merged_at": None,
        "head": {"ref": pull.head, "label": f"{of.owner}:{pull.head}", "repo": repo},
        "base": {"ref": pull.base, "label": f"{of.owner}:{pull.base}", "repo": repo},
    }
