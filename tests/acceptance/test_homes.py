"""A home as a whole: backed up while it is used, restored, moved, and removed."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING

from forge_actors.runtime.homes import is_ours
from tests.acceptance.bench import survivors, wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService


def test_a_backup_of_a_busy_service_brings_every_job_back(
    service: LiveService,
) -> None:
    gate, bell = service.gate(), service.bell()
    first = service.bash("app", "echo first")
    service.end_of(first)
    runs = service.bash("app", f"{bell.ring}; {gate.wait}")
    bell.wait()
    waits = service.bash("app", f"echo x >> {service.root / 'done'}")
    file = service.root / "backup.sqlite"
    told = service.json("backup", file)
    assert (told["waiting"], told["reserved"], told["ended"]) == (1, 1, 1)
    assert service.cli("restore", file, status=3).err.count("\n") == 1
    gate.open()
    assert service.end_of(waits)["state"] == "succeeded"
    service.cli("stop", status=0)
    store = service.home / "store.sqlite"
    store.write_bytes(store.read_bytes()[: store.stat().st_size // 2])
    service.cli("serve", status=3)
    told = service.json("restore", file)
    assert told["replaced"].startswith(str(service.home / "damaged"))
    service.start()
    assert service.show(first)["state"] == "succeeded"
    # Both ended since, and their output or rows say so: neither runs again.
    for job in (runs, waits):
        found = service.show(job)
        assert found["state"] in ("succeeded", "human_attention_required", "queued")
    assert (service.root / "done").read_text() == "x\n"
    other = service.bash("app", "true")
    assert service.why(waits)
    assert service.end_of(other)["state"] == "succeeded"
    assert (service.root / "done").read_text() == "x\n"


def test_a_home_is_moved_and_the_old_one_purged(
    service: LiveService, make_service: Callable[[str], LiveService]
) -> None:
    job = service.bash("app", "echo moved")
    service.end_of(job)
    file = service.root / "home.tar"
    service.cli("export", file, status=0)
    assert service.cli("purge", "--yes", status=3).err.count("\n") == 1
    service.cli("stop", status=0)
    new = make_service("")
    (new.home / "settings.toml").unlink()
    here = new.repository("clone")
    new.cli("import", "--repo", f"app={here}", file, status=0)
    new.start()
    assert new.log(job) == b"moved\n"
    assert new.end_of(new.bash("app", "true"))["state"] == "succeeded"

    assert all(is_ours(entry.name) for entry in service.home.iterdir())
    listed = service.cli("purge", status=3)
    assert str(service.home / "store.sqlite") in listed.out
    assert service.home.exists()
    removed = json.loads(service.cli("purge", "--yes", "--json", status=0).out)
    assert removed["removed"] is True
    assert not service.home.exists()
    assert not (service.root / "app" / ".git" / "forge-actors").exists()


def test_a_home_whose_jobs_run_on_keeps_its_store(service: LiveService) -> None:
    """What runs under the node agent would be lost to another store."""
    mark, bell = service.marker(), service.bell()
    job = service.bash("app", f"{bell.ring}; sleep {mark}")
    bell.wait()
    file = service.root / "backup.sqlite"
    service.cli("backup", file, status=0)
    service.cli("stop", status=0)
    for words in (("restore", file), ("restore", "--empty"), ("purge", "--yes")):
        refused = service.cli(*words, status=3)
        assert f"kill {service.agent_pid} ends them" in refused.err
        assert refused.err.count("\n") == 1
    os.kill(service.agent_pid, signal.SIGTERM)
    assert wait_until_ended(service.agent_pid)
    assert not survivors(mark)
    service.cli("restore", file, status=0)
    service.start()
    assert service.end_of(job)["state"] == "human_attention_required"
