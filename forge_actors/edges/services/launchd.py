"""launchd, the manager of macOS: an agent of the user."""

from __future__ import annotations

import os
import plistlib
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.domain.services import ManagedService, ManagedState
from forge_actors.edges.services.programs import called, done, put

if TYPE_CHECKING:
    from forge_actors.domain.services import Manager

#: Seconds from one start to the next.
THROTTLE = 5


class Launchd:
    """The port `ServiceManager`."""

    kind: Manager = "launchd"

    def install(self, service: ManagedService, *, start: bool) -> list[str]:
        """See the port."""
        path = plist_path(service)
        # Before a file is written that nobody could take out again.
        called(["launchctl", "version"])
        if path.exists():
            called(["launchctl", "bootout", _target(service)])
        put(path, plist(service, start=start), 0o644)
        done(["launchctl", "bootstrap", _domain(), str(path)])
        return []

    def uninstall(self, service: ManagedService) -> list[str]:
        """See the port."""
        path = plist_path(service)
        if path.exists():
            called(["launchctl", "bootout", _target(service)])
            path.unlink(missing_ok=True)
        return []

    def state(self, service: ManagedService) -> ManagedState:
        """See the port."""
        path = plist_path(service)
        told = called(["launchctl", "print", _target(service)])
        lines = (line.strip().partition(" = ") for line in told.stdout.splitlines())
        found = {name: value for name, _, value in lines}
        pid = found.get("pid", "")
        return ManagedState(
            self.kind,
            service.name,
            installed=path.exists(),
            enabled=told.returncode == 0,
            active=found.get("state") == "running",
            pid=int(pid) if pid.isdecimal() else None,
            file=str(path),
            detail=found.get("state", "not loaded"),
        )

    def log_command(
        self, service: ManagedService, lines: int, *, follow: bool
    ) -> list[str]:
        """See the port."""
        follows = ["-F"] if follow else []
        return ["tail", "-n", str(lines), *follows, service.log]


def plist(service: ManagedService, *, start: bool) -> bytes:
    """What launchd goes by (launchd.plist). It starts the service again when that has
    failed, and not when it was stopped."""
    return plistlib.dumps(
        {
            "Label": service.name,
            "ProgramArguments": [service.launcher],
            "RunAtLoad": start,
            "KeepAlive": {"SuccessfulExit": False},
            "ThrottleInterval": THROTTLE,
            "ProcessType": "Background",
            "AbandonProcessGroup": True,
            "StandardOutPath": service.log,
            "StandardErrorPath": service.log,
        }
    )


def plist_path(service: ManagedService) -> Path:
    return Path("~/Library/LaunchAgents").expanduser() / f"{service.name}.plist"


def _domain() -> str:
    return f"gui/{os.getuid()}"


def _target(service: ManagedService) -> str:
    return f"{_domain()}/{service.name}"
