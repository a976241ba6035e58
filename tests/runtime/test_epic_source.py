"""Where the graph of an EPIC comes from, by what somebody wrote."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.epic_source import epic_at, open_graph
from forge_actors.runtime.github_settings import GitHubSettings
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.testing.epic.graph_people import PlanPeople, WorldPeople
from forge_actors.testing.github import FakeGitHub, serving
from tests.edges.github_kit import TOKEN, world_of_two

if TYPE_CHECKING:
    from pathlib import Path

URL = "https://github.com/octo/demo/issues/7"
COMPANY = "https://ghe.example/octo/demo/issues/7"


async def test_a_url_is_read_where_the_interface_is_said_to_be(tmp_path: Path) -> None:
    async with serving(world_of_two()) as server:
        people = WorldPeople(server.world, server.world.repositories[101])
        people.add(1)
        environ = {"GITHUB_API_URL": server.base, "GH_TOKEN": TOKEN, "PATH": ""}
        secrets = SecretFolder(tmp_path)
        graph = open_graph(URL, GitHubSettings(), secrets, environ=environ)
        assert [each.number for each in (await graph.snapshot()).children] == [1]
        await graph.close()
        site = f"{server.site}/octo/demo/issues/7"
        assert epic_at(site, GitHubSettings(), environ).number == 7
        # A person names the server, so what is for servers of companies is for it.
        environ["GH_ENTERPRISE_TOKEN"] = environ.pop("GH_TOKEN")
        graph = open_graph(site, GitHubSettings(), secrets, environ=environ)
        assert (await graph.repository()).id == 101
        await graph.close()
        with pytest.raises(InvalidInput, match="is no server that is set up"):
            epic_at(site, GitHubSettings(), {})


async def test_a_path_is_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = PlanPeople(tmp_path / "plan.toml")
    people.add(3)
    monkeypatch.chdir(tmp_path)
    secrets = SecretFolder(tmp_path)
    graph = open_graph("./plan.toml", GitHubSettings(), secrets)
    os.chdir("/")
    assert [each.number for each in (await graph.snapshot()).children] == [3]
    for target in ("./plan.toml", "", "octo/demo#7"):
        with pytest.raises(InvalidInput, match="is no URL of an issue and no plan"):
            open_graph(target, GitHubSettings(), secrets)


async def test_a_reader_that_others_use_stays_open(tmp_path: Path) -> None:
    reader = FakeGitHub(world_of_two())
    secrets = SecretFolder(tmp_path)
    graph = open_graph(URL, GitHubSettings(), secrets, shared=reader)
    assert (await graph.repository()).id == 101
    await graph.close()
    assert not reader.closed


@pytest.mark.parametrize(
    ("settings", "environ", "known"),
    [
        (GitHubSettings(), {}, False),
        (GitHubSettings(tokens={"ghe.example": "READING"}), {}, True),
        (GitHubSettings(), {"GH_HOST": "GHE.example"}, True),
        (GitHubSettings(api="https://ghe.example/api/v3"), {}, True),
        (GitHubSettings(), {"GITHUB_API_URL": "https://ghe.example/api/v3"}, True),
        (GitHubSettings(), {"GITHUB_API_URL": "https://other.example"}, False),
    ],
)
def test_a_server_of_a_company_is_one_that_is_set_up(
    settings: GitHubSettings, environ: dict[str, str], known: bool
) -> None:
    if known:
        assert epic_at(COMPANY, settings, environ).place.host == "ghe.example"
    else:
        with pytest.raises(InvalidInput, match="is no server that is set up"):
            epic_at(COMPANY, settings, environ)
    with pytest.raises(InvalidInput):
        epic_at(COMPANY.replace("https", "http"), settings, environ)
