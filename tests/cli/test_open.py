"""`open` in front of a service: the link, and the browser that is started."""

from __future__ import annotations

import json
import os
import stat
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.logins import LoginLink
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

ENDPOINT = "http://127.0.0.1:4711"


class Links:
    """Makes links that let nobody in."""

    def __init__(self) -> None:
        self.places: list[str] = []

    async def login_link(self, place: str = "/") -> LoginLink:
        self.places.append(place)
        url = f"{ENDPOINT}/login?ticket=secret{len(self.places)}"
        return LoginLink(url, ENDPOINT, 60)


@pytest.fixture
def opener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A desktop whose opener tells a pipe what it is given."""
    folder = tmp_path / "bin"
    folder.mkdir()
    pipe = tmp_path / "opened"
    os.mkfifo(pipe)
    program = folder / "xdg-open"
    program.write_text(f'#!/bin/sh\nprintf "%s" "$*" > {pipe}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("DISPLAY", ":0")
    return pipe


async def test_a_link_is_printed_alone(tmp_path: Path, shell: Shell) -> None:
    links = Links()
    async with fake_service(tmp_path, logins=links):
        done = await shell("open", "--print")
        assert done == (0, f"{ENDPOINT}/login?ticket=secret1\n", "")
        _, out, _ = await shell("open", "--json")
        assert json.loads(out) == {
            "url": f"{ENDPOINT}/login?ticket=secret2",
            "endpoint": ENDPOINT,
            "expires_in": 60,
        }
    assert links.places == ["/", "/"]


async def test_one_can_begin_with_a_job(tmp_path: Path, shell: Shell) -> None:
    links = Links()
    async with fake_service(tmp_path, logins=links):
        job = await shell.submit("--repo", "app")
        status, _, _ = await shell("open", "--print", job[-6:])
        assert (status, links.places) == (0, [f"/jobs/{job}"])
        status, _, err = await shell("open", "--print", "nosuchjob")
        assert (status, len(links.places)) == (2, 1)
        assert "nosuchjob" in err


async def test_a_browser_is_led_to_the_link_by_a_file_of_the_owner(
    tmp_path: Path, shell: Shell, opener: Path
) -> None:
    async with fake_service(tmp_path, logins=Links()):
        for number in (1, 2):
            status, out, err = await shell("open")
            assert (status, out) == (0, "")
            assert "secret" not in err
            told = opener.read_text()
            file = tmp_path / "open.html"
            assert told == str(file)
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
            assert f'url={ENDPOINT}/login?ticket=secret{number}"' in file.read_text()


async def test_a_file_that_others_put_there_is_not_written_to(
    tmp_path: Path, shell: Shell, opener: Path
) -> None:
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "open.html").symlink_to(other)
    async with fake_service(tmp_path, logins=Links()):
        assert (await shell("open"))[0] == 0
        opener.read_text()
    assert other.read_text() == "mine"
    assert not (tmp_path / "open.html").is_symlink()


async def test_a_browser_can_be_given_the_link_itself(
    tmp_path: Path, shell: Shell, opener: Path
) -> None:
    async with fake_service(tmp_path, logins=Links()):
        assert (await shell("open", "--direct"))[0] == 0
        assert opener.read_text() == f"{ENDPOINT}/login?ticket=secret1"
        assert not (tmp_path / "open.html").exists()
        status, _, err = await shell("open", "--direct", "--print")
        assert (status, "--direct" in err) == (2, True)


async def test_without_a_desktop_the_link_is_printed(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    async with fake_service(tmp_path, logins=Links()):
        status, out, err = await shell("open")
    assert (status, out) == (0, f"{ENDPOINT}/login?ticket=secret1\n")
    assert "no browser to start" in err


async def test_a_service_without_pages_says_so(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path):
        status, out, err = await shell("open", "--print")
    assert (status, out) == (4, "")
    assert "no pages" in err
