"""Where there is no manager: the service is started now, and by nobody later."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from forge_actors.domain.errors import ServiceManagerFailed
from forge_actors.domain.services import ManagedService, ManagedState
from forge_actors.edges.services.programs import called, done

if TYPE_CHECKING:
    from forge_actors.domain.services import Manager

#: Exit status of a verb that found no service.
NO_SERVICE = 4


class Portable:
    """The port `ServiceManager`."""

    kind: Manager = "portable"

    def install(self, service: ManagedService, *, start: bool) -> list[str]:
        """See the port."""
        if start and self._running(service) is None:
            done([service.launcher, "serve", "--detach"])
        again = f"{service.launcher} serve --detach"
        return [
            f"nothing here starts it by itself, or when it failed; that does: {again}"
        ]

    def uninstall(self, service: ManagedService) -> list[str]:
        """See the port."""
        result = called([service.launcher, "stop"])
        if result.returncode not in (0, NO_SERVICE):
            raise ServiceManagerFailed(result.stderr.strip() or "it did not stop")
        return []

    def state(self, service: ManagedService) -> ManagedState:
        """See the port."""
        pid = self._running(service)
        return ManagedState(
            self.kind,
            service.name,
            installed=True,
            active=pid is not None,
            pid=pid,
            file=service.launcher,
            detail="it runs" if pid is not None else "no service runs",
        )

    def log_command(
        self, service: ManagedService, lines: int, *, follow: bool
    ) -> list[str]:
        """See the port."""
        follows = ["-F"] if follow else []
        return ["tail", "-n", str(lines), *follows, service.log]

    def _running(self, service: ManagedService) -> int | None:
        result = called([service.launcher, "status", "--json"])
        if result.returncode:
            return None
        try:
            return int(json.loads(result.stdout)["service"]["pid"])
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
