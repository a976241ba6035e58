"""The service of a home under a manager: installed, looked at, and taken out again.

The manager starts a small script in the home, not the program itself. The script names
the program of the active release and is written anew when that changes, so that an
upgrade that removes the old folder leaves nothing behind that cannot start.
"""

from __future__ import annotations

import os
import shlex
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.errors import NotFound, Refused, ServiceManagerFailed
from forge_actors.domain.services import (
    MANAGERS,
    ManagedService,
    ManagedState,
    Manager,
    ServiceManager,
    service_name,
)
from forge_actors.edges.services.launchd import Launchd
from forge_actors.edges.services.portable import Portable
from forge_actors.edges.services.programs import put
from forge_actors.edges.services.systemd import Systemd
from forge_actors.runtime.homes import LAUNCHER, refuse_shared

if TYPE_CHECKING:
    from pathlib import Path

#: Variables of whoever installs it that the service, and so its jobs, start with.
KEPT = ("PATH", "SHELL", "LANG", "TZ")
SCRIPT = """\
#!/bin/sh
# Starts the service of this home, or another verb for it. Written by forge-actors
# service install, and again by forge-actors release activate.
# manager: {manager}
{variables}
verb=${{1:-serve}}
[ $# -eq 0 ] || shift
exec {python} -P -m forge_actors "$verb" --home {home} "$@"
"""
_MANAGER = "# manager: "
_AFTER = "\nverb=${1:-serve}\n"


def install(
    home: Path, wanted: Manager | None, *, start: bool
) -> tuple[ManagedState, list[str]]:
    """Have a manager keep the service of a home running; what to know besides.

    Raises:
        ServiceManagerFailed: it cannot.
    """
    refuse_shared(home)
    manager = _manager(wanted or choose())
    service = _service(home)
    before = installed_with(home)
    if before is not None and before != manager.kind:
        raise Refused(
            f"the service is installed with {before} already; first:"
            " forge-actors service uninstall"
        )
    _write_launcher(home, manager.kind)
    try:
        notes = manager.install(service, start=start)
    except ServiceManagerFailed:
        if before is None:
            # Half of it would start what is not there, and nothing would take it out.
            with suppress(ServiceManagerFailed):
                manager.uninstall(service)
            (home / LAUNCHER).unlink(missing_ok=True)
        raise
    return manager.state(service), notes


def uninstall(home: Path) -> tuple[Manager, list[str]]:
    """Take it out; its jobs go on.

    Raises:
        NotFound: it is not installed. ServiceManagerFailed: it cannot be taken out.
    """
    kind = _installed(home)
    notes = _manager(kind).uninstall(_service(home))
    (home / LAUNCHER).unlink(missing_ok=True)
    return kind, notes


def state(home: Path) -> ManagedState:
    """What its manager says of it.

    Raises:
        NotFound: it is not installed. ServiceManagerFailed: the manager says nothing.
    """
    return _manager(_installed(home)).state(_service(home))


def log_command(home: Path, lines: int, *, follow: bool) -> list[str]:
    """What prints what the service said last.

    Raises:
        NotFound: it is not installed.
    """
    manager = _manager(_installed(home))
    return manager.log_command(_service(home), lines, follow=follow)


def renew_launcher(home: Path) -> bool:
    """Have the manager start this program from now on; False if it has none."""
    kind = installed_with(home)
    if kind is None:
        return False
    _write_launcher(home, kind, _variables(home, kind))
    return True


def choose() -> Manager:
    """The manager that there is."""
    if sys.platform == "darwin":
        return "launchd"
    return "systemd" if Systemd.is_here() else "portable"


def installed_with(home: Path) -> Manager | None:
    """The manager that the service of a home was installed with."""
    try:
        text = (home / LAUNCHER).read_text("utf-8", "replace")
    except OSError:
        return None
    for line in text.splitlines():
        for kind in MANAGERS:
            if line == f"{_MANAGER}{kind}":
                return kind
    return None


def _installed(home: Path) -> Manager:
    kind = installed_with(home)
    if kind is None:
        raise NotFound(
            f"the service of {home} is not installed; that does:"
            " forge-actors service install"
        )
    return kind


def _manager(kind: Manager) -> ServiceManager:
    match kind:
        case "systemd":
            return Systemd()
        case "launchd":
            return Launchd()
        case "portable":
            return Portable()


def _service(home: Path) -> ManagedService:
    real = os.path.realpath(home)
    return ManagedService(
        service_name(real),
        real,
        os.path.join(real, LAUNCHER),
        os.path.join(real, "service.log"),
    )


def _variables(home: Path, manager: Manager) -> str | None:
    """The lines of the script that say what the service starts with."""
    text = (home / LAUNCHER).read_text("utf-8", "surrogateescape")
    rest = text.partition(f"{_MANAGER}{manager}\n")[2]
    variables, end, _ = rest.partition(_AFTER)
    return variables if end else None


def _write_launcher(home: Path, manager: Manager, variables: str | None = None) -> None:
    if variables is None:
        wanted = (n for n in os.environ if n in KEPT or n.startswith("LC_"))
        # The shell ends at a name that is none to it, as one of other letters is.
        fit = (name for name in wanted if name.isascii() and name.isidentifier())
        names = sorted(fit)
        variables = "\n".join(
            f"export {name}={shlex.quote(os.environ[name])}" for name in names
        )
    real = os.path.realpath(home)
    text = SCRIPT.format(
        manager=manager,
        variables=variables,
        python=shlex.quote(sys.executable),
        home=shlex.quote(real),
    )
    put(home / LAUNCHER, text.encode("utf-8", "surrogateescape"), 0o700)
