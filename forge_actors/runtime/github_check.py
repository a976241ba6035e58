"""Whether GitHub can be read here: whether it answers, and whose token there is."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import trio

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.github.answers import refusal
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.github.places import GITHUB, api_base
from forge_actors.runtime.github import is_here, tokens_of
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from forge_actors.edges.github.tokens import Token
    from forge_actors.runtime.github_settings import GitHubSettings

    Found = tuple[Literal["ok", "missing", "broken"], str]

#: Seconds that it may take to answer here.
SECONDS = 5.0
ANONYMOUS = "no token: only public repositories, 60 questions an hour"


def look(home: str) -> Found:
    """What is found. It is asked only where somebody means to use it."""
    if not is_here():
        return "missing", "not read: forge-actors[epic] is not installed"
    try:
        settings = load(Path(home, SETTINGS_FILE)).settings.github
        base = settings.base(os.environ)
    except ForgeError as error:
        return "broken", str(error)
    return trio.run(_look, settings, base or api_base(GITHUB), home)


async def _look(settings: GitHubSettings, base: str, home: str) -> Found:
    tokens = tokens_of(lambda: settings, SecretFolder(home))
    hosts = [GITHUB, *(host for host in sorted(settings.tokens) if host != GITHUB)]
    found = {host: await tokens.find(host) for host in hosts}
    said = "; ".join(
        f"token for {host} from {token.origin}"
        for host, token in found.items()
        if token is not None
    )
    if not said and base == api_base(GITHUB):
        return "ok", f"{ANONYMOUS}; it was not asked whether it answers"
    where = base.partition("://")[2]
    trouble = await _trouble(base, found[GITHUB])
    if trouble is not None:
        return "missing", f"{where}: {trouble}; {said or ANONYMOUS}"
    return "ok", f"{where} answers; {said or ANONYMOUS}"


async def _trouble(base: str, token: Token | None) -> str | None:
    """Why it does not answer. It is a question that no limit counts."""
    from forge_actors.edges.github.http import Http

    headers = {"user-agent": "forge-actors", "accept": "application/vnd.github+json"}
    if token is not None:
        headers["authorization"] = f"Bearer {token.value}"
    http, what = Http(base, seconds=SECONDS), "GET /rate_limit"
    try:
        answer = await http.get(f"{base}/rate_limit", headers, what)
        failed = refusal(answer, what, 0.0)
    except GitHubFailed as error:
        failed = error
    finally:
        await http.close()
    # A server of a company may have no limits to tell of.
    return None if failed is None or failed.kind == "not-found" else str(failed)
