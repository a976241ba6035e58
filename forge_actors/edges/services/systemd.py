"""A systemd of the user: a unit that is told when it is ready, and watched.

Only the main process is ended when the unit stops: jobs belong to the node agent, which
goes on for the next service. For the same reason one job that has used up the memory
does not end the unit.
"""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING

from forge_actors.domain.errors import ServiceManagerFailed
from forge_actors.domain.services import ManagedService, ManagedState
from forge_actors.edges.services.programs import called, done, put

if TYPE_CHECKING:
    from forge_actors.domain.services import Manager

USER = ("systemctl", "--user")
#: Seconds without a sign of life after which it is started anew; until it is ready,
#: which waits for room on the disk; and for its stop.
WATCHDOG, START, STOP = 60, 900, 150
#: Seconds that the manager may need besides.
PATIENCE = 30
#: What a path in a unit has to say differently.
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\t": "\\t", "%": "%%", "$": "$$"}

UNIT = """\
[Unit]
Description=Forge Actors, the service of {described}
StartLimitIntervalSec=300
StartLimitBurst=10

[Service]
Type=notify
NotifyAccess=main
ExecStart=/bin/sh {launcher}
Restart=on-failure
RestartSec=5
WatchdogSec={watchdog}
TimeoutStartSec={start}
TimeoutStopSec={stop}
# Jobs outlive a restart of the service, and one that uses up the memory ends alone.
KillMode=process
OOMPolicy=continue
Delegate=yes
CPUAccounting=yes
MemoryAccounting=yes
IOAccounting=yes
TasksAccounting=yes
TasksMax=infinity

[Install]
WantedBy=default.target
"""


class Systemd:
    """The port `ServiceManager`."""

    kind: Manager = "systemd"

    @staticmethod
    def is_here() -> bool:
        """Whether a manager of this user answers."""
        try:
            return called([*USER, "show-environment"]).returncode == 0
        except ServiceManagerFailed:
            return False

    def install(self, service: ManagedService, *, start: bool) -> list[str]:
        """See the port."""
        # Before a file is written that nobody could take out again.
        done([*USER, "show-environment"])
        put(unit_path(service), unit(service).encode("utf-8", "surrogateescape"))
        done([*USER, "daemon-reload"])
        done([*USER, "enable", _unit_name(service)])
        if start:
            words = [*USER, "restart", _unit_name(service)]
            done(words, STOP + START + PATIENCE)
        return _lingering()

    def uninstall(self, service: ManagedService) -> list[str]:
        """See the port."""
        path = unit_path(service)
        if path.exists():
            done([*USER, "disable", "--now", _unit_name(service)], STOP + PATIENCE)
            path.unlink(missing_ok=True)
            done([*USER, "daemon-reload"])
            called([*USER, "reset-failed", _unit_name(service)])
        return []

    def state(self, service: ManagedService) -> ManagedState:
        """See the port."""
        path = unit_path(service)
        wanted = "ActiveState,SubState,UnitFileState,MainPID,Result"
        told = done([*USER, "show", _unit_name(service), f"--property={wanted}"])
        lines = (line.partition("=") for line in told.splitlines())
        found = {name: value for name, _, value in lines}
        pid = int(found.get("MainPID") or 0) or None
        result = found.get("Result", "success")
        return ManagedState(
            self.kind,
            service.name,
            installed=path.exists(),
            enabled=found.get("UnitFileState") == "enabled",
            active=found.get("ActiveState") in ("active", "reloading", "activating"),
            pid=pid,
            file=str(path),
            detail=f"{found.get('ActiveState', 'unknown')} ({found.get('SubState')})"
            + ("" if result == "success" else f", last result {result}"),
            warning=next(iter(_lingering()), None),
        )

    def log_command(
        self, service: ManagedService, lines: int, *, follow: bool
    ) -> list[str]:
        """See the port."""
        words = ["journalctl", "--user", "--unit", _unit_name(service)]
        return [*words, f"--lines={lines}", *(["--follow"] if follow else [])]


def unit(service: ManagedService) -> str:
    """The unit of a service.

    Raises:
        ServiceManagerFailed: no unit can name its home.
    """
    described = "".join(c if c.isprintable() else "?" for c in service.home)
    return UNIT.format(
        described=described.replace("%", "%%").rstrip("\\"),
        launcher=quoted(service.launcher),
        watchdog=WATCHDOG,
        start=START,
        stop=STOP,
    )


def quoted(path: str) -> str:
    """An argument of a command, as a unit has it (systemd.service, systemd.syntax): a
    program itself may have no special characters in its path.

    Raises:
        ServiceManagerFailed: it cannot be named.
    """
    if "\n" in path or "\r" in path:
        raise ServiceManagerFailed(f"{path!r} has a line break, which no unit can have")
    text = "".join(_ESCAPES.get(c, c) for c in path)
    return f'"{text}"'


def unit_path(service: ManagedService) -> Path:
    config = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(config).expanduser() / "systemd" / "user" / _unit_name(service)


def _unit_name(service: ManagedService) -> str:
    return f"{service.name}.service"


def _lingering() -> list[str]:
    """That everything ends when the user logs out, unless it is told to linger."""
    try:
        user = getpass.getuser()
        told = done(["loginctl", "show-user", user, "--property=Linger"])
    except (ServiceManagerFailed, KeyError, OSError):
        return []
    if told.strip() == "Linger=yes":
        return []
    keeps = f"loginctl enable-linger {user}"
    return [
        f"the service and its jobs end when you log out; to keep them running: {keeps}"
    ]
