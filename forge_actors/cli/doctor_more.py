"""More of what `doctor` looks at: extras, the clock, what a home keeps."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.cli.doctor_check import State
    from forge_actors.client.sync import Service

    Found = tuple[str, State, str]

#: Folders that may be watched by one user, fewer of which are soon used up.
FEW_WATCHES = 8192
#: A clock that says less was never set.
BEGIN = 1_767_225_600.0
#: Errors of jobs that are told.
ERRORS = 3
#: The libraries of each extra.
EXTRAS = {
    "gateway": ("mcp", "starlette", "httpx2", "prometheus_client"),
    "tui": ("textual",),
    "otel": ("opentelemetry.sdk",),
}


def more(home: str, service: Service | None) -> Iterator[Found]:
    """What was found, each as a name, a state and a text."""
    yield _extras()
    yield _clock()
    yield _watches()
    yield _managed(home)
    if service is not None:
        yield from _failed(service)
        yield from _trust(service)


def _extras() -> Found:
    told = []
    for extra, modules in EXTRAS.items():
        there = [name for name in modules if _is_here(name)]
        if len(there) == len(modules):
            told.append(extra)
        elif there:
            gone = ", ".join(sorted(set(modules) - set(there)))
            return "extras", "broken", f"of forge-actors[{extra}] is missing: {gone}"
    rest = [extra for extra in EXTRAS if extra not in told]
    without = f"; not installed: {', '.join(rest)}" if rest else ""
    return "extras", "ok", f"{', '.join(told) or 'none'}{without}"


def _is_here(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def _clock() -> Found:
    now = time.time()
    if now < BEGIN:
        return "clock", "broken", "it was never set: schedules and budgets go by it"
    from forge_actors.runtime.schedule_requests import local_zone

    return "clock", "ok", f"time zone {local_zone()}"


def _watches() -> Found:
    if not sys.platform.startswith("linux"):
        return "inotify", "missing", "files of checkouts are not watched here"
    folder = Path("/proc/sys/fs/inotify")
    try:
        watches, instances = (
            int((folder / name).read_text())
            for name in ("max_user_watches", "max_user_instances")
        )
    except (OSError, ValueError) as error:
        return "inotify", "missing", str(error)
    state: State = "missing" if watches < FEW_WATCHES else "ok"
    more = "" if state == "ok" else "; raise fs.inotify.max_user_watches"
    return "inotify", state, f"{watches} folders, {instances} programs a user{more}"


def _managed(home: str) -> Found:
    from forge_actors.runtime import service_install
    from forge_actors.runtime.homes import LAUNCHER

    if service_install.installed_with(Path(home)) is None:
        return "manager", "ok", "none: the service is started by hand"
    try:
        state = service_install.state(Path(home))
    except ForgeError as error:
        return "manager", "broken", str(error)
    launcher = Path(home, LAUNCHER)
    if not os.access(launcher, os.X_OK):
        return "manager", "broken", f"{launcher} cannot be executed"
    return "manager", "ok" if state.installed else "broken", state.detail


def _failed(service: Service) -> Iterator[Found]:
    """What failed last, if a service tells."""
    try:
        query = [("failed", 1), ("limit", ERRORS)]
        failed: list[Any] = service.get("jobs", query=query)["jobs"]
    except ForgeError:
        return
    if failed:
        told = "; ".join(
            f"{job['id'][-6:]} {(job['error'] or {}).get('code', job['state'])}"
            for job in failed
        )
        yield "failed", "ok", f"the last jobs that failed: {told}"


def _trust(service: Service) -> Iterator[Found]:
    """What repositories bring along that is not what was trusted of them."""
    try:
        items: list[Any] = service.get("inbox")["items"]
    except ForgeError:
        return
    names = [str(item["repo"]) for item in items if item["kind"] == "trust"]
    if names:
        told = f"{', '.join(names)}: .forge/*.toml is not what was trusted"
        yield "trust", "missing", f"{told}; see forge-actors repo trust NAME --show"
