"""How a runtime reads GitHub: its settings, its tokens, and what `doctor` says."""

from __future__ import annotations

import importlib.util
import socket
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.runtime import github_check
from forge_actors.runtime.github import open_github, tokens_of
from forge_actors.runtime.github_settings import GitHubSettings
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.settings import settings_from
from forge_actors.testing.github import World, serving
from forge_actors.testing.github_contract import PLACE

if TYPE_CHECKING:
    from pathlib import Path

TOKEN = "github_pat_testtesttesttesttest"


def test_what_is_set_is_checked_and_shown() -> None:
    tables = {"api": "https://ghe.example/api/v3/", "tokens": {"ghe.example": "READ"}}
    settings = settings_from({"github": tables})
    values = settings.values()
    assert values["github.tokens.ghe.example"] == "READ"
    assert values["github.timeout"] == "20s"
    assert settings.github.base({}) == "https://ghe.example/api/v3"
    assert GitHubSettings().base({}) is None
    said = {"GITHUB_API_URL": "http://127.0.0.1:9/"}
    assert GitHubSettings().base(said) == "http://127.0.0.1:9"
    for wrong, field in (
        ({"api": "http://ghe.example"}, "github.api"),
        ({"timeout": "5m"}, "github.timeout"),
        ({"tokens": {"https://x/y": "READ"}}, "github.tokens"),
        ({"tokens": {"github.com": "two words"}}, "github.tokens.github.com"),
        ({"issues_at_once": 0}, "github.issues_at_once"),
        ({"surprise": 1}, "github.surprise"),
    ):
        with pytest.raises(InvalidInput) as caught:
            settings_from({"github": wrong})
        assert caught.value.field == field
    with pytest.raises(InvalidInput, match="GITHUB_API_URL"):
        GitHubSettings().base({"GITHUB_API_URL": "http://ghe.example"})


async def test_a_runtime_reads_with_the_secret_of_its_home(tmp_path: Path) -> None:
    world = World()
    world.repository("octo", "demo", private=True)
    world.token(TOKEN)
    secrets = SecretFolder(tmp_path)
    secrets.write("READING", TOKEN.encode())
    async with serving(world) as server:
        settings = GitHubSettings(api=server.base, tokens={"github.com": "READING"})
        reader = open_github(settings, secrets, {"PATH": ""})
        assert (await reader.repository(PLACE)).id == 101
        await reader.close()


def test_without_the_extra_it_is_said_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(Refused, match=r"forge-actors\[epic\]"):
        open_github(GitHubSettings(), SecretFolder(tmp_path))
    state, text = github_check.look(str(tmp_path))
    assert (state, "[epic]" in text) == ("missing", True)


async def test_doctor_tells_where_the_token_comes_from_and_never_what_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World()
    world.token(TOKEN)
    monkeypatch.setenv("PATH", "")
    async with serving(world) as server:
        monkeypatch.setenv("GITHUB_API_URL", server.base)

        async def told() -> str:
            state, text = await trio.to_thread.run_sync(
                github_check.look, str(tmp_path)
            )
            assert TOKEN not in text
            return f"{state} {text}"

        where = server.base.removeprefix("http://")
        assert await told() == f"ok {where} answers; {github_check.ANONYMOUS}"
        monkeypatch.setenv("GH_TOKEN", TOKEN)
        expected = (
            f"ok {where} answers; token for github.com from the variable GH_TOKEN"
        )
        assert await told() == expected
        assert world.tokens[TOKEN].used == 0
        world.tokens.clear()
        assert (await told()).startswith(f"missing {where}: GitHub answered 401 to")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = f"http://127.0.0.1:{free.getsockname()[1]}"
        monkeypatch.setenv("GITHUB_API_URL", closed)
        assert "cannot be reached for GET /rate_limit: Connection refused;" in (
            await told()
        )
    (tmp_path / "settings.toml").write_text('[github]\napi = "ftp://x"\n')
    assert (await told()).startswith("broken ")


def test_nothing_is_asked_where_nobody_means_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("GITHUB_API_URL")
    monkeypatch.setenv("PATH", "")
    state, text = github_check.look(str(tmp_path))
    assert (state, "was not asked" in text) == ("ok", True)


def test_tokens_are_of_this_home(tmp_path: Path) -> None:
    settings = GitHubSettings(tokens={"github.com": "MISSING"})
    tokens = tokens_of(lambda: settings, SecretFolder(tmp_path), {"GH_TOKEN": "a"})
    found = trio.run(tokens.find, "github.com")
    assert found is not None
    assert found.origin == "the variable GH_TOKEN"
