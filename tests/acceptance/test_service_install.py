"""The service installed where no manager is: started, looked at, and taken out."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService


def test_a_service_is_installed_and_taken_out_while_its_jobs_go_on(
    service: LiveService,
) -> None:
    service.add("app")
    gate = service.gate()
    job = service.bash("app", gate.wait)
    service.until(job, "job_running")
    refused = service.cli("service", "install", "--manager", "systemd", status=3)
    assert "forge-actors stop" in refused.err
    none = service.cli("service", "status", status=2)
    assert "service install" in none.err
    service.cli("stop", status=0)
    done = service.cli("service", "install", "--manager", "portable", status=0)
    assert "serve --detach" in done.err
    service.find()
    state = service.json("service", "status")
    assert (state["manager"], state["pid"]) == ("portable", service.pid)
    launcher = service.home / "launch"
    assert os.stat(launcher).st_mode & 0o777 == 0o700
    # What an upgrade leaves of an old program is not what is started.
    launcher.write_text(launcher.read_text().replace("exec ", "exec /gone/"))
    service.cli("release", "activate", status=0)
    assert "/gone/" not in launcher.read_text()
    pid = service.pid
    done = service.cli("service", "uninstall", status=0)
    assert wait_until_ended(pid)
    assert not launcher.exists()
    service.start()
    gate.open()
    assert service.end_of(job)["exit_code"] == 0
