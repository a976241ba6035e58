"""A store that is damaged while no service runs: one clear refusal, each time."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import apsw

from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def damage(service: LiveService) -> None:
    """Cut the store of a stopped service short."""
    store = service.home / "store.sqlite"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 3])


def overwrite(service: LiveService) -> None:
    """Overwrite most of the store of a service that runs, its log included."""
    path = service.home / "store.sqlite"
    db = apsw.Connection(str(path))
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    db.close()
    with path.open("r+b") as file:
        size = path.stat().st_size
        file.seek(size // 3)
        file.write(os.urandom(size - size // 3))


def stop(service: LiveService) -> None:
    service.cli("stop", status=0)


def test_a_service_never_begins_anew_because_its_store_is_damaged(
    service: LiveService,
) -> None:
    job = service.bash("app", "true")
    service.end_of(job)
    stop(service)
    damage(service)
    first = service.cli("serve", status=3)
    assert first.err.count("\n") == 1
    assert f"the store of {service.home} is damaged" in first.err
    assert f"forge-actors restore --home {service.home} FILE" in first.err
    for words in (("serve",), ("serve", "--detach")):
        again = service.cli(*words, status=3)
        assert first.err.removeprefix("forge-actors: ").strip() in again.err
    [kept] = (service.home / "damaged").iterdir()
    assert str(kept) in first.err


def test_whoever_looks_at_a_home_with_a_damaged_store_is_told(
    service: LiveService,
) -> None:
    stop(service)
    assert "whole, schema" in service.cli("doctor").out
    damage(service)
    assert "broken   store" in service.cli("doctor", status=1).out
    service.cli("serve", status=3)
    told = json.loads(service.cli("jobs", "--json", status=3).err)
    assert told["error"]["code"] == "STORE_DAMAGED"
    checks = json.loads(service.cli("doctor", "--json", status=1).out)["checks"]
    [check] = [entry for entry in checks if entry["name"] == "store"]
    assert (check["state"], "restore" in check["detail"]) == ("broken", True)


def test_a_service_whose_store_is_damaged_under_it_ends_and_does_not_begin_anew(
    service: LiveService,
) -> None:
    service.cli("pause", "--all", status=0)
    line = {"repo": "app", "argv": ["true", "x" * 4000]}
    jobs = service.batch([line] * 3000)
    file = service.root / "backup.sqlite"
    service.cli("backup", file, status=0)
    overwrite(service)
    # Whatever it is asked now, it says so or is gone, until a write finds the damage.
    service.cli("jobs", "--limit", "1000")
    service.cli("cancel", "--state", "queued", "--repo", "app")
    service.cli("resume", "--all")
    assert wait_until_ended(service.pid)
    said = (service.home / "service.log").read_text()
    assert "forge-actors: the store is damaged" in said
    service.cli("serve", status=3)
    told = service.json("restore", file)
    # One may have begun before a write found the damage, and be known of.
    assert (told["waiting"] in (2999, 3000), told["whole"]) == (True, False)
    service.start()
    # Nobody can tell whether they began: they wait until somebody says so.
    assert service.show(jobs[-1])["state"] == "queued"
    assert "unhold" in service.why(jobs[-1])
