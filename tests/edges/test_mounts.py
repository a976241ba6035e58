"""D-09: a home on a file system that other machines write to is refused, and named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors import open_runtime
from forge_actors.domain.errors import InvalidInput
from forge_actors.edges import mounts
from tests.cli.shell import Shell

if TYPE_CHECKING:
    from pathlib import Path

TABLE = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
23 22 0:21 / /proc rw - proc proc rw
30 22 0:50 / /home rw,relatime shared:2 master:3 - nfs4 server:/home rw,vers=4.2
31 30 8:2 / /home/local rw - xfs /dev/sda2 rw
32 22 0:51 / /mnt/with\040space rw - cifs //server/share rw
33 22 0:52 / /over rw - ext4 /dev/sdb rw
34 22 0:53 / /over rw - fuse.sshfs someone@server:/ rw
nonsense
"""


def mounted(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(mounts, "read_mounts", lambda: text)


@pytest.mark.parametrize(
    ("path", "kind", "shared"),
    [
        ("/", "ext4", False),
        ("/var/lib/forge", "ext4", False),
        ("/home/me/.local/state/forge-actors", "nfs4", True),
        ("/home", "nfs4", True),
        ("/homes/me", "ext4", False),
        ("/home/local/forge", "xfs", False),
        ("/mnt/with space/forge", "cifs", True),
        ("/over/forge", "fuse.sshfs", True),
    ],
)
def test_the_mount_that_is_nearest_above_a_path_counts(
    monkeypatch: pytest.MonkeyPatch, path: str, kind: str, shared: bool
) -> None:
    mounted(monkeypatch, TABLE)
    assert mounts.filesystem(path) == kind
    assert (mounts.shared_with_others(path) == kind) == shared


def test_where_nobody_tells_nothing_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mounted(monkeypatch, "")
    assert mounts.shared_with_others("/home") is None


@pytest.mark.parametrize("kind", ["nfs", "nfs4", "cifs", "9p", "fuse.sshfs"])
async def test_no_runtime_starts_on_a_shared_file_system(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    kind: str,
) -> None:
    mounted(monkeypatch, f"1 1 0:1 / / rw - {kind} server rw")
    home = tmp_path / "home"
    with pytest.raises(InvalidInput, match=f"on a file system of the kind {kind}"):
        async with open_runtime(home):
            pass
    assert not home.exists()
    status, out, _ = await Shell(home, capsys)("doctor")
    assert status == 1
    assert f"on a file system of the kind {kind}" in out
    mounted(monkeypatch, "1 1 0:1 / / rw - ext4 /dev/sda1 rw")
    async with open_runtime(home):
        pass


def test_the_table_of_this_machine_can_be_read(tmp_path: Path) -> None:
    assert mounts.filesystem(str(tmp_path))
