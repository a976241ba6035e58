"""How GitHub is reached: certificates, proxies, and where tokens come from."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
from functools import partial
from typing import TYPE_CHECKING

import pytest
import trio

from forge_actors.domain.errors import NotFound
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.edges.github import tokens
from forge_actors.edges.github.reader import GitHubReader
from forge_actors.edges.github.tokens import Tokens
from forge_actors.testing.github_contract import PLACE, at
from tests.edges.github_kit import bench

if TYPE_CHECKING:
    from pathlib import Path

CLOUD, COMPANY = "github.com", "ghe.example"
NO_GH = {"PATH": ""}


# -- certificates and proxies ------------------------------------------------------


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A key and a certificate for this machine, which nobody trusts."""
    if shutil.which("openssl") is None:
        pytest.skip("makes its certificate with openssl, which is not here")
    folder = tmp_path_factory.mktemp("certified")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1"
    command += " -nodes -days 2 -subj /CN=127.0.0.1"
    command += " -addext subjectAltName=IP:127.0.0.1"
    subprocess.run(
        [*command.split(), "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    return key, certificate


async def test_a_certificate_counts_if_it_is_trusted(
    certified: tuple[Path, Path],
) -> None:
    key, certificate = certified
    served = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    served.load_cert_chain(certificate, key)
    trusting = ssl.create_default_context(cafile=certificate)
    async with bench(served=served, trusted=trusting) as made:
        made.world.issue(made.demo, 1)
        assert (await made.reader.issue(at(1))).at == at(1)
    async with bench(served=served) as made:
        made.world.issue(made.demo, 1)
        with pytest.raises(GitHubFailed, match="certificate is not trusted") as caught:
            await made.reader.issue(at(1))
        assert caught.value.kind == "unavailable"
        assert made.troubles.log == type(made.troubles.log)()


async def test_the_proxy_of_the_environment_is_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    came: list[bytes] = []

    async def proxy(stream: trio.SocketStream) -> None:
        came.append(bytes(await stream.receive_some()))
        await stream.send_all(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n")
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        serve = partial(trio.serve_tcp, proxy, 0, host="127.0.0.1")
        [listener] = await nursery.start(serve)
        port = listener.socket.getsockname()[1]
        url = f"http://user:hidden-word@127.0.0.1:{port}"
        monkeypatch.setenv("HTTPS_PROXY", url)
        monkeypatch.setenv("HTTP_PROXY", url)
        reader = GitHubReader(Tokens(NO_GH), sleep=_at_once)
        with pytest.raises(GitHubFailed, match="proxy does not let us") as caught:
            await reader.repository(PLACE)
        assert "hidden-word" not in str(caught.value)
        await reader.close()
        assert [head.split()[:2] for head in came] == [
            [b"CONNECT", b"api.github.com:443"]
        ] * 3
        # This machine is reached without it.
        async with bench() as made:
            await made.reader.repository(PLACE)
        assert len(came) == 3
        nursery.cancel_scope.cancel()


async def _at_once(_: float) -> None:
    await trio.lowlevel.checkpoint()


# -- tokens ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("environ", "host", "expected"),
    [
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, CLOUD, "a"),
        ({"GH_TOKEN": "", "GITHUB_TOKEN": "b"}, CLOUD, "b"),
        ({"GITHUB_TOKEN": "b"}, "tenant.ghe.com", "b"),
        ({"GH_TOKEN": "a", "GITHUB_TOKEN": "b"}, COMPANY, None),
        ({"GH_ENTERPRISE_TOKEN": "c", "GH_TOKEN": "a"}, COMPANY, "c"),
        ({"GITHUB_ENTERPRISE_TOKEN": "d"}, COMPANY, "d"),
        ({"GH_ENTERPRISE_TOKEN": "c"}, CLOUD, None),
        ({"GITHUB_TOKEN": "b", "CODESPACES": "true"}, COMPANY, "b"),
        ({"GH_TOKEN": "two words"}, CLOUD, None),
        ({"GH_TOKEN": "a\nx-evil: 1"}, CLOUD, None),
        ({"GH_TOKEN": "ž"}, CLOUD, None),
        ({}, CLOUD, None),
    ],
)
async def test_the_variables_of_gh_count_for_their_servers(
    environ: dict[str, str], host: str, expected: str | None
) -> None:
    found = await Tokens({**NO_GH, **environ}, named=[COMPANY]).find(host)
    assert (None if found is None else found.value) == expected


async def test_a_server_that_nobody_named_is_sent_no_token_of_another() -> None:
    environ = {**NO_GH, "GH_ENTERPRISE_TOKEN": "c", "GH_TOKEN": "a"}
    assert await Tokens(environ).find(COMPANY) is None
    assert await Tokens(environ, named=["other.example"]).find(COMPANY) is None
    assert await Tokens({**environ, "GH_HOST": COMPANY.upper()}).find(COMPANY)


async def test_a_secret_that_is_named_comes_first() -> None:
    def secret(host: str) -> tuple[str, bytes] | None:
        if host == COMPANY:
            raise NotFound("there is no such secret")
        return ("READING", b"of-the-home") if host == CLOUD else None

    environ = {**NO_GH, "GH_TOKEN": "a", "GH_ENTERPRISE_TOKEN": "c"}
    made = Tokens(environ, secret, named=[COMPANY])
    found = await made.find(CLOUD)
    assert found is not None
    assert (found.value, found.origin) == ("of-the-home", "the secret READING")
    assert "of-the-home" not in f"{found}{found!r}"
    other = await made.find(COMPANY)
    assert other is not None
    assert other.value == "c"


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ("echo gho_fromgh", "gho_fromgh"),
        ("echo no oauth token found >&2; exit 1", None),
        ("echo one; echo two", None),
        ("exit 0", None),
        ("exec sleep 1000", None),
    ],
)
async def test_gh_is_asked_last_and_once(
    says: str, expected: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "sleep" in says:
        monkeypatch.setattr(tokens, "GH_SECONDS", 0.05)
    gh = tmp_path / "gh"
    gh.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\n{says}\n')
    gh.chmod(0o700)
    made = Tokens({"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    for _ in range(2):
        found = await made.find(CLOUD)
        assert (None if found is None else found.value) == expected
    if "sleep" not in says:
        asked = (tmp_path / "asked").read_text()
        assert asked == "auth token --hostname github.com\n"


async def test_a_token_that_was_forgotten_is_looked_for_anew() -> None:
    environ = {**NO_GH, "GH_TOKEN": "a"}
    made = Tokens(environ)
    await made.find(CLOUD)
    environ["GH_TOKEN"] = "b"
    found = await made.find(CLOUD)
    assert found is not None
    assert found.value == "a"
    made.forget(CLOUD)
    found = await made.find(CLOUD)
    assert found is not None
    assert found.value == "b"
