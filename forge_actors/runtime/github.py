"""GitHub as a runtime reads it. Its client is loaded when it is first needed."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import Refused
from forge_actors.domain.github.places import parse_issue_url
from forge_actors.runtime.secrets import SecretFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from pathlib import Path

    from forge_actors.domain.github.issues import GitHub
    from forge_actors.domain.github.pulls import PullRequests
    from forge_actors.edges.github.tokens import Tokens
    from forge_actors.runtime.github_settings import GitHubSettings

#: Seconds that connections are given to close.
CLOSE_SECONDS = 2.0
NOT_HERE = "reading GitHub needs: pip install 'forge-actors[epic]'"


class GitHubAccess:
    """The one reader of a runtime, so that all who read share its limits."""

    def __init__(self, settings: Callable[[], GitHubSettings], home: Path) -> None:
        self.settings = settings
        self._secrets = SecretFolder(home)
        self._reader: GitHub | None = None

    def reader(self) -> GitHub:
        """
        Raises:
            Refused: the extra is not installed.
            InvalidInput: the environment says of GitHub what cannot be.
        """
        if self._reader is None:
            self._reader = open_github(self.settings(), self._secrets)
        return self._reader

    async def close(self) -> None:
        """Let go of what is open; nobody reads any more."""
        reader, self._reader = self._reader, None
        if reader is not None:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await reader.close()


def is_here() -> bool:
    """Whether what it needs is installed."""
    return importlib.util.find_spec("httpx2") is not None


def open_github(
    settings: GitHubSettings,
    secrets: SecretFolder,
    environ: Mapping[str, str] = os.environ,
    named: Collection[str] = (),
) -> GitHub:
    """A reader; nothing is asked and no token looked for before it is used. A person
    has `named` these servers of companies.

    Raises:
        Refused: the extra is not installed.
        InvalidInput: the environment says of GitHub what cannot be.
    """
    base = settings.base(environ)
    if not is_here():
        raise Refused(NOT_HERE)
    from forge_actors.edges.github.reader import GitHubReader

    tokens = tokens_of(lambda: settings, secrets, environ, named)
    return GitHubReader(tokens, base, seconds=settings.seconds)


def open_pull_requests(
    settings: GitHubSettings,
    secrets: SecretFolder,
    issue_url: str,
    environ: Mapping[str, str] = os.environ,
) -> PullRequests:
    """Who opens pull requests where an issue is; nothing is asked before it is used.

    Raises:
        Refused: the extra is not installed.
        InvalidInput: the environment says of GitHub what cannot be.
    """
    base = settings.base(environ)
    host = parse_issue_url(issue_url).place.host
    if not is_here():
        raise Refused(NOT_HERE)
    from forge_actors.edges.github.pulls import GitHubPullRequests

    tokens = tokens_of(lambda: settings, secrets, environ, (host,))
    return GitHubPullRequests(host, tokens, base, seconds=settings.seconds)


def tokens_of(
    settings: Callable[[], GitHubSettings],
    secrets: SecretFolder,
    environ: Mapping[str, str] = os.environ,
    named: Collection[str] = (),
) -> Tokens:
    """Where tokens come from: a secret of the home, the environment, `gh`."""
    from forge_actors.edges.github.tokens import Tokens

    def secret(host: str) -> tuple[str, bytes] | None:
        name = settings().tokens.get(host)
        return None if name is None else (name, secrets.read(name))

    return Tokens(environ, secret, named)
