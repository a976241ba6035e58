"""`doctor --bundle`: what it has, and what it must not have."""

from __future__ import annotations

import json
import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

KEY = "sk-ant-api03-" + "q" * 40


def test_a_bundle_has_what_helps_and_nothing_private(service: LiveService) -> None:
    service.add("app")
    script = f"echo PRIVATE-OUTPUT; echo {KEY} >&2; exit 3 # PRIVATE-ARGUMENT"
    service.end_of(service.bash("app", script, "--name", "PRIVATE-NAME"))
    path = service.root / "bundle.tar.gz"
    done = service.cli("doctor", "--bundle", str(path), status=0)
    assert done.out == f"{path}\n"
    assert path.stat().st_mode & 0o777 == 0o600
    with tarfile.open(path) as archive:
        parts = {
            name.partition("/")[2]: archive.extractfile(name).read().decode()  # type: ignore[union-attr]
            for name in archive.getnames()
        }
    assert {"versions.txt", "doctor.json", "status.json", "events.jsonl"} <= set(parts)
    assert any(check["name"] == "store" for check in json.loads(parts["doctor.json"]))
    [job] = json.loads(parts["jobs.json"])["jobs"]
    assert (job["state"], job["argv"]) == ("failed", "(left out)")
    whole = "\n".join(parts.values())
    for private in (KEY, "PRIVATE", str(service.home)):
        assert private not in whole
    again = service.cli("doctor", "--bundle", str(path), status=3)
    assert "is there already" in again.err
    service.end()
    other = service.root / "other.tar.gz"
    service.cli("doctor", "--bundle", str(other), status=0)
    nowhere = service.cli("doctor", "--bundle", "/nowhere/x", status=2)
    assert nowhere.err.count("\n") == 1
