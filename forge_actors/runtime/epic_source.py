"""Where the graph of an EPIC comes from: an issue on GitHub, or the files of a plan."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from forge_actors.domain.epic.urls import parse_epic_url
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import host_name, is_loopback
from forge_actors.runtime.epic_graph import GitHubGraph
from forge_actors.runtime.epic_plan import PlanGraph
from forge_actors.runtime.github import open_github

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forge_actors.domain.epic.graph import Graph
    from forge_actors.domain.github.issues import GitHub
    from forge_actors.domain.github.places import IssueAt
    from forge_actors.runtime.github_settings import GitHubSettings
    from forge_actors.runtime.secrets import SecretFolder

MAX_SHOWN = 200


def open_graph(
    target: str,
    settings: GitHubSettings,
    secrets: SecretFolder,
    *,
    environ: Mapping[str, str] = os.environ,
    shared: GitHub | None = None,
    wall: Callable[[], float] = time.time,
) -> Graph:
    """The graph that a URL of an issue, or the path of a plan, means.

    Nothing is read and no token looked for before it is used. A `shared` reader is
    asked if there is one, and stays open.

    Raises:
        InvalidInput: it is no URL of an issue, or no path of anything.
        Refused: the extra for reading GitHub is not installed.
    """
    if "://" not in target:
        path = Path(target).absolute()
        if not target or not path.exists():
            problem = f"{target[:MAX_SHOWN]!r} is no URL of an issue and no plan"
            raise InvalidInput("epic", problem)
        return PlanGraph(path, wall=wall)
    at = epic_at(target, settings, environ)
    if shared is not None:
        return GitHubGraph(shared, at, wall=wall, shared=True)
    reader = open_github(settings, secrets, environ, named=(at.place.host,))
    return GitHubGraph(reader, at, wall=wall)


def epic_at(
    url: str, settings: GitHubSettings, environ: Mapping[str, str] = os.environ
) -> IssueAt:
    """The issue that a URL leads to, on GitHub or on a server that is set up: by a
    token that is named, by `GH_HOST`, or as the one that is asked.

    Raises:
        InvalidInput: it leads to none.
    """
    hosts = set(settings.tokens)
    if named := environ.get("GH_HOST"):
        hosts.add(host_name(named))
    base, plain = settings.base(environ), set()
    if base is not None:
        asked = urlsplit(base).netloc.lower()
        hosts.add(asked)
        if is_loopback(base):
            plain.add(asked)
    return parse_epic_url(url, hosts=hosts, plain=plain)
