"""A store that is damaged while no service runs: one clear refusal, each time."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def damage(service: LiveService) -> None:
    """Cut the store of a stopped service short."""
    store = service.home / "store.sqlite"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 3])


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
