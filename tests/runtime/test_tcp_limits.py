"""How many clients come over TCP where files are short, and what they may send."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.open_files import OpenFiles
from forge_actors.runtime.gateway_settings import GatewaySettings
from forge_actors.runtime.interface import client_limits, tcp_limits
from forge_actors.runtime.settings import Settings
from forge_actors.runtime.sources import load

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("limit", "owner", "tcp"),
    [(None, 384, 384), (1024, 384, 384), (600, 384, 168), (256, 208, 4), (64, 16, 4)],
)
def test_the_owner_of_a_service_has_the_first_places(
    limit: int | None, owner: int, tcp: int
) -> None:
    gateway, files = GatewaySettings(), OpenFiles(limit)
    first = client_limits(gateway, files)
    others = tcp_limits(gateway, files, first)
    assert (first.connections, others.connections) == (owner, tcp)
    assert 0 < others.held < others.connections


def test_what_comes_over_tcp_is_small_unless_it_is_a_batch() -> None:
    gateway = GatewaySettings(tcp_body_bytes=2048)
    limits = tcp_limits(
        gateway, OpenFiles(None), client_limits(gateway, OpenFiles(None))
    )
    assert limits.body_bytes == 2048
    assert limits.batch_bytes == client_limits(gateway, OpenFiles(None)).body_bytes


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("port = -1", "port"),
        ("port = 65536", "port"),
        ("port = '80'", "port"),
        ("tcp_requests = 0", "tcp_requests"),
        ("tcp_body_bytes = 0", "tcp_body_bytes"),
        ("host = '0.0.0.0'", "host"),
    ],
)
def test_a_setting_of_tcp_that_is_none_is_refused(
    tmp_path: Path, line: str, field: str
) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(f"[gateway]\n{line}\n")
    with pytest.raises(InvalidInput, match=rf"gateway\.{field}"):
        load(path, {})


def test_tcp_is_off_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert Settings().gateway.port is None
    path = tmp_path / "settings.toml"
    path.write_text("[gateway]\nport = 0\n")
    assert load(path, {}).settings.gateway.port == 0
