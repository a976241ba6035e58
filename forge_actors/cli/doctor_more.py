"""More of what `doctor` looks at: extras, the clock, what a home keeps."""

from __future__ import annotations

import importlib.util
import os
import re
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
#: A requirement of the core, as the metadata of a package have it.
_NEEDED = re.compile(r"([A-Za-z0-9._-]+)>=([0-9.]+)")
#: The libraries of each extra.
EXTRAS = {
    "gateway": ("mcp", "starlette", "httpx2", "prometheus_client"),
    "epic": ("httpx2",),
    "tui": ("textual",),
    "otel": ("opentelemetry.sdk",),
}


def more(home: str, service: Service | None) -> Iterator[Found]:
    """What was found, each as a name, a state and a text."""
    yield _libraries()
    yield _extras()
    yield _clock()
    yield _watches()
    yield _managed(home)
    yield _github(home)
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


def _github(home: str) -> Found:
    from forge_actors.runtime.github_check import look

    return "github", *look(home)


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
    if not state.installed:
        return "manager", "broken", state.detail
    if state.warning is not None:
        return "manager", "missing", f"{state.detail}; {state.warning}"
    return "manager", "ok", state.detail


def answers(status: dict[str, Any]) -> Iterator[Found]:
    """What a service says of itself as a whole, each question by itself."""
    if status.get("execution_ready"):
        yield "execution", "ok", "jobs are started"
    else:
        why = "; ".join(status["degraded"]) or ", ".join(status.get("reasons") or ())
        yield "execution", "broken", f"nothing is started: {why or 'it ends'}"
    maintenance = status.get("maintenance") or {}
    if (problem := maintenance.get("problem")) is None:
        last = (maintenance.get("last") or {}).get("ended_at")
        yield "clean-up", "ok", f"the last one ended at {last}" if last else "none yet"
    else:
        # The disk fills up, and jobs go on.
        way_out = "forge-actors clean runs it now and says more"
        yield "clean-up", "missing", f"{problem}; {way_out}"
    release = status["service"].get("release") or {}
    match status.get("release_coherent"):
        case True:
            yield "release", "ok", f"{release['id']} is the active one"
        case False:
            detail = f"{release['id']} serves, but another one is the active one"
            yield "release", "broken", f"{detail}: forge-actors release shows both"
        case _:
            detail = "nobody can tell which one is active: forge-actors release"
            yield "release", "missing", detail


def unserved_release(home: str) -> Found:
    """Whether this program may serve a home that nobody serves."""
    from forge_actors.runtime.release import read_active, this_release

    try:
        active = read_active(Path(home))
    except ForgeError as error:
        return "release", "broken", str(error)
    mine = this_release().id
    if active is None:
        return "release", "ok", f"{mine}; none is active yet, the first service decides"
    if active.release.id == mine:
        return "release", "ok", f"{mine} is the active one"
    other = f"{active.release.id} in {active.release.path} is the active one"
    way_out = "forge-actors release activate makes this one it"
    return "release", "missing", f"{mine} is here, but {other}: {way_out}"


def _libraries() -> Found:
    """What the core needs, in the versions that it needs at least."""
    from importlib import metadata

    told, wrong = [], []
    try:
        lines = metadata.requires("forge-actors") or ()
    except metadata.PackageNotFoundError:
        return "libraries", "missing", "forge-actors is not installed as a package"
    for line in lines:
        found = _NEEDED.fullmatch(line)
        if found is None:
            continue  # that of an extra
        name, least = found.groups()
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            wrong.append(f"{name} is missing")
            continue
        told.append(f"{name} {version}")
        if _numbers(version) < _numbers(least):
            wrong.append(f"{name} is {version}, at least {least} is needed")
    if wrong:
        return "libraries", "broken", "; ".join(wrong)
    return "libraries", "ok", ", ".join(told)


def _numbers(version: str) -> list[int]:
    return [int(part) for part in re.findall(r"[0-9]+", version)]


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
