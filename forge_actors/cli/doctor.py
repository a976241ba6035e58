"""`doctor`: check what this machine offers, and say what is missing."""

from __future__ import annotations

import dataclasses
import os
import platform
import resource
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.cli.agent_text import found_here, unseen
from forge_actors.cli.disk_text import home_text
from forge_actors.cli.doctor_check import Check, State
from forge_actors.cli.doctor_more import answers, more, unserved_release
from forge_actors.cli.doctor_system import system
from forge_actors.cli.text import clean
from forge_actors.cli.verb import note, print_json
from forge_actors.client.errors import NoService
from forge_actors.client.home import published, resolve_home, socket_path
from forge_actors.client.sync import Service
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.open_files import LEAST, OpenFiles
from forge_actors.domain.sizes import size_text

if TYPE_CHECKING:
    import argparse

HELP = "Check what this machine offers. Exits with 1 when something is broken."
EXAMPLES = """\
  forge-actors doctor
  forge-actors doctor --json
  forge-actors doctor --bundle forge.tar.gz
"""
#: The first version of SQLite whose write-ahead log is safe with several connections.
SQLITE_LEAST = (3, 51, 3)
GIT_LEAST = (2, 25)
AGENT_SECONDS = 20.0
#: How it begins what a status file says of a service that cannot answer.
LOOP_BLOCKED = "the loop of the service does not turn"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--bundle",
        metavar="FILE",
        help="write all this, and what the home says, to a .tar.gz for whoever helps;"
        " without secrets, arguments and output of jobs",
    )


def run(args: argparse.Namespace) -> int:
    home = resolve_home(args.home)
    checks = [
        _python(),
        _git(),
        _sqlite(),
        _home(home),
        _store(home),
        _files(),
        _socket(home),
        *_service(home),
        *_last_words(home),
        _agent(),
        *(Check("agents", state, text) for state, text in found_here()),
        *system(),
        *(Check(*found) for found in more(home, _asked(args, home))),
    ]
    broken = any(check.state == "broken" for check in checks)
    if args.bundle is not None:
        return _bundle(args, home, checks)
    if args.json:
        found = [dataclasses.asdict(check) for check in checks]
        print_json({"ok": not broken, "checks": found})
    else:
        for check in checks:
            print(clean(f"{check.state:<8} {check.name:<10} {check.detail}"))
    return 1 if broken else 0


def _asked(args: argparse.Namespace, home: str) -> Service | None:
    """The service; None if it would not answer, and whoever asks would wait."""
    told = published(home)
    blocked = told.get("stage") == "ready" and _loop(told)
    return None if blocked else Service(args.home)


def _bundle(args: argparse.Namespace, home: str, checks: list[Check]) -> int:
    from forge_actors.cli.doctor_bundle import write

    path = Path(os.path.abspath(os.path.expanduser(args.bundle)))
    found = [dataclasses.asdict(check) for check in checks]
    names = write(path, home, _asked(args, home), found)
    if args.json:
        print_json({"file": str(path), "parts": names})
    else:
        print(clean(str(path)))
        note(f"{len(names)} parts; look through it before you give it away")
    return 0


def _python() -> Check:
    state: State = "ok" if sys.version_info >= (3, 11) else "broken"
    return Check("python", state, f"{platform.python_version()} ({sys.executable})")


def _git() -> Check:
    try:
        answer = subprocess.run(
            ["git", "--version"], capture_output=True, text=True, check=True, timeout=10
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError) as error:
        return Check("git", "broken", f"cannot be run: {error}")
    version = answer.removeprefix("git version ").split(" ")[0]
    old = _numbers(version) < GIT_LEAST
    note = f", at least {'.'.join(map(str, GIT_LEAST))} is needed" if old else ""
    return Check("git", "broken" if old else "ok", version + note)


def _sqlite() -> Check:
    try:
        import apsw
    except ImportError as error:
        return Check("sqlite", "broken", str(error))
    version: str = apsw.sqlite_lib_version()
    old = _numbers(version) < SQLITE_LEAST
    note = f", at least {'.'.join(map(str, SQLITE_LEAST))} is needed" if old else ""
    return Check("sqlite", "broken" if old else "ok", version + note)


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _home(home: str) -> Check:
    from forge_actors.runtime.homes import shared_problem

    if problem := shared_problem(home):
        return Check("home", "broken", problem)
    try:
        found = os.stat(home)
    except FileNotFoundError:
        parent = _existing(home)
        if os.access(parent, os.W_OK):
            return Check("home", "ok", f"{home} will be made by the first start")
        return Check("home", "broken", f"{home} cannot be made in {parent}")
    except OSError as error:
        return Check("home", "broken", str(error))
    if not stat.S_ISDIR(found.st_mode):
        return Check("home", "broken", f"{home} is no folder")
    if found.st_uid != os.geteuid():
        return Check("home", "broken", f"{home} belongs to another user")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        return Check("home", "broken", f"{home} has mode {mode:04o}; chmod 0700 {home}")
    if not os.access(home, os.W_OK):
        return Check("home", "broken", f"{home} cannot be written to")
    return Check("home", "ok", home)


def _store(home: str) -> Check:
    """Every page and row of the store, which also a service in use affords."""
    try:
        from forge_actors.client import offline

        return Check("store", "ok", offline.check(home))
    except NoService:
        return Check("store", "ok", "none yet; the first start makes it")
    except ImportError as error:
        return Check("store", "broken", str(error))
    except ForgeError as error:
        return Check("store", "broken", str(error))


def _existing(path: str) -> str:
    """The nearest folder above `path` that exists."""
    place = Path(path)
    return str(next(up for up in (place, *place.parents) if up.exists()))


def _disk(home: str, found: dict[str, Any]) -> Check:
    """The room there is; `found` is what `status` says of it, if there is a service."""
    if found.get("free") is None:
        found = {**found, **_room(home)}
    if found["state"] == "unknown":
        return Check("disk", "missing", "nobody can tell how much room it has")
    taken = home_text(found.get("home") or {})
    room = f"{size_text(found['free'])} free of {size_text(found['total'])}"
    detail = f"{room}; the home takes {taken}" if taken else room
    if found["problem"] is not None:
        detail = f"{found['problem']}; {detail}"
    states: dict[str, State] = {"ok": "ok", "low": "missing", "full": "broken"}
    return Check("disk", states[found["state"]], detail)


def _room(home: str) -> dict[str, Any]:
    """What `status` would say of it, by the settings of the home."""
    from forge_actors.runtime.disk_watch import room_view

    return room_view(home, _existing(home))


def _files() -> Check:
    """What a service that is started from here would have."""
    # The service takes all it can have; its jobs have what there is by default.
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    jobs, most = (None if n == resource.RLIM_INFINITY else n for n in limits)
    files = OpenFiles(most, jobs)
    if files.limit is None:
        return Check("files", "ok", str(files))
    if files.limit < LEAST:
        return Check("files", "broken", f"{files}; at least {LEAST} are needed")
    fit = f"{files.workers} workers and {files.connections} clients at once"
    return Check("files", "ok", f"{files}: enough for {fit}")


def _socket(home: str) -> Check:
    try:
        return Check("socket", "ok", socket_path(home))
    except (ForgeError, OSError) as error:
        return Check("socket", "broken", str(error))


def _service(home: str) -> list[Check]:
    blocked = published(home)
    if blocked.get("stage") == "ready" and (words := _loop(blocked)):
        # It would not answer.
        return [_disk(home, {}), Check("service", "broken", words)]
    try:
        status = Service(home).get("status")
    except NoService:
        note = "not running; forge-actors serve starts it"
        release = Check(*unserved_release(home))
        return [_disk(home, {}), Check("service", "missing", note), release]
    except (ForgeError, OSError) as error:
        return [_disk(home, {}), Check("service", "broken", str(error))]
    return [
        _disk(home, status.get("disk") or {}),
        _health(status),
        *_kept_claims(status.get("quarantined") or []),
        *_set_aside(status.get("poisoned") or []),
        *_unseen(status.get("agents") or []),
        *(Check(*found) for found in answers(status)),
    ]


def _loop(told: dict[str, Any]) -> str:
    """What is said of a service by the thread that sees that nothing else runs."""
    said = (str(words) for words in told.get("degraded") or ())
    return "; ".join(words for words in said if words.startswith(LOOP_BLOCKED))


def _unseen(agents: list[dict[str, Any]]) -> list[Check]:
    return [Check("agents", "missing", text) for text in unseen(agents)]


def _set_aside(poisoned: list[dict[str, Any]]) -> list[Check]:
    """What made an actor fail over and over, and is left alone."""
    return [
        Check(
            "aside",
            "broken",
            f"{'job ' + each['job'] + ' of ' if each['job'] else ''}repository"
            f" {each['repo']} was set aside (since {each['since']}): {each['error']};"
            f" forge-actors repo enable {each['repo']} tries again",
        )
        for each in poisoned
    ]


def _kept_claims(quarantined: list[dict[str, Any]]) -> list[Check]:
    """The claims that nobody gets, and what has to be gone for that to end."""
    return [
        Check(
            "claims",
            "broken",
            f"{' '.join(left['claims']) or 'nothing'} of {left['repo']} is kept for"
            f" what job {left['job']} left (since {left['since']}): process"
            f" {' '.join(map(str, left['pids']))}; it is free once that is gone, also"
            " after a restart of the machine; forge-actors quarantine release"
            f" {left['job']} frees it by hand",
        )
        for left in quarantined
    ]


def _health(status: dict[str, Any]) -> Check:
    service = status["service"]
    # Of the disk is told by itself.
    disk = (status.get("disk") or {}).get("problem")
    degraded = [each for each in status["degraded"] if each != disk]
    named = f"pid {service['pid']}, version {service['version']}"
    if degraded:
        return Check("service", "broken", f"{named}: {'; '.join(degraded)}")
    return Check("service", "ok", named)


def _last_words(home: str) -> list[Check]:
    """What a service has written down of itself, and why the last one ended."""
    from forge_actors.runtime.reports import latest_reports
    from forge_actors.runtime.status_file import last_exit

    found = []
    ended = last_exit(Path(home))
    if ended.get("status") not in (None, 0, 75):
        detail = f"{ended.get('reason')} at {ended.get('ended_at')}, in the stage"
        detail += f" {ended.get('stage')}: {ended.get('message')}"
        found.append(Check("last exit", "missing", detail))
    paths = [str(path) for path in latest_reports(Path(home))]
    if paths:
        found.append(Check("reports", "ok", f"the newest: {' '.join(paths)}"))
    return found


def _agent() -> Check:
    """Start a node agent of its own, bound to us, and let it see that we went away."""
    import forge_actors

    program = Path(forge_actors.__file__).parent / "edges" / "node" / "agent"
    ours, theirs = socket.socketpair()
    with tempfile.TemporaryDirectory() as home, ours, theirs:
        command = [sys.executable, "-I", "-S", str(program / "__main__.py")]
        try:
            agent = subprocess.Popen(
                [*command, "--fd", str(theirs.fileno()), "--home", home],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
            )
            theirs.close()
            ours.close()
            words = agent.communicate(timeout=AGENT_SECONDS)[1]
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.wait()
            return Check("agent", "broken", "did not end when its owner went away")
        except OSError as error:
            return Check("agent", "broken", str(error))
    if agent.returncode == 0:
        return Check("agent", "ok", "starts, and a bound one ends with its owner")
    lines = words.decode("utf-8", "replace").strip().splitlines()
    reason = lines[-1] if lines else f"ended with status {agent.returncode}"
    return Check("agent", "broken", reason)
