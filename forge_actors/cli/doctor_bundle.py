"""What `doctor` found and what a home says, in one file for somebody who helps.

No argument, no output and no prompt of a job is in it. Secrets that are recognised and
private folders are replaced by placeholders.
"""

from __future__ import annotations

import io
import json
import os
import platform
import sys
import tarfile
import tempfile
import time
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import ForgeError, InvalidInput, Refused
from forge_actors.domain.redaction import private_roots, redact, scrub

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.client.sync import Service
    from forge_actors.domain.redaction import Roots

#: Bytes of the end of a log that are taken.
LOG_BYTES = 512 * 1024
EVENTS, JOBS = 1000, 200
LOGS = ("service.log", "agent.log")
STATUS = "runtime/status.json"
#: What of a job may tell what it works on, or what it printed.
_PRIVATE = frozenset(
    {
        *("argv", "env", "cwd", "labels", "name", "job_name", "result", "prompt"),
        *("stdin", "message", "detail", "commands", "command", "verify"),
        # Sentences of the inbox, and where and how its jobs and agents ran.
        *("says", "said", "folder", "after_job"),
    }
)


def write(
    path: Path, home: str, service: Service | None, checks: list[Any]
) -> list[str]:
    """Write the file, readable for its owner alone; the names of what is in it.

    Raises:
        Refused: there is such a file. InvalidInput: it cannot be written.
    """
    roots = private_roots(
        [os.path.expanduser("~")],
        [home, os.path.realpath(home)],
        [tempfile.gettempdir()],
    )
    names = []
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        with (
            os.fdopen(os.open(path, flags, 0o600), "wb") as file,
            tarfile.open(fileobj=file, mode="w:gz") as archive,
        ):
            for name, text in _parts(home, service, checks):
                data = _clean(text, roots).encode("utf-8", "replace")
                entry = tarfile.TarInfo(f"forge-actors/{name}")
                entry.size, entry.mtime, entry.mode = len(data), int(time.time()), 0o600
                archive.addfile(entry, io.BytesIO(data))
                names.append(name)
    except FileExistsError:
        raise Refused(f"{path} is there already; nothing was written") from None
    except OSError as error:
        path.unlink(missing_ok=True)
        raise InvalidInput("bundle", f"{path}: {error.strerror}") from None
    return names


def _clean(text: str, roots: Roots) -> str:
    return scrub(redact(text), roots)


def _parts(
    home: str, service: Service | None, checks: list[Any]
) -> Iterator[tuple[str, str]]:
    yield "versions.txt", _versions()
    yield "doctor.json", json.dumps(checks, indent=2)
    if service is not None:
        yield from _answers(service)
    for log in (*LOGS, STATUS):
        text = _end(Path(home, log))
        if text is not None:
            yield log.replace("/", "-"), text


def _answers(service: Service) -> Iterator[tuple[str, str]]:
    for name, query in (
        ("status", ()),
        ("settings", ()),
        ("inbox", ()),
        ("quarantine", ()),
        ("repositories", ()),
        ("schedules", ()),
        ("jobs", (("limit", JOBS),)),
    ):
        try:
            answer = service.get(name, query=list(query))
        except ForgeError as error:
            yield f"{name}.error", f"{error}\n"
        else:
            yield f"{name}.json", json.dumps(_without(answer), indent=2)
    yield "events.jsonl", _events(service)


def _versions() -> str:
    lines = [f"{sys.version}", platform.platform(), ""]
    wanted = ("forge-actors", "trio", "msgspec", "apsw", "h11", "psutil", "anyio")
    for name in (*wanted, "mcp", "starlette", "httpx2", "textual", "cronsim"):
        try:
            lines.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            lines.append(f"{name} is not installed")
    return "\n".join(lines) + "\n"


def _events(service: Service) -> str:
    query = [("limit", EVENTS), ("newest", 1)]
    try:
        lines = b"".join(service.stream("GET", ("events",), query=query)).splitlines()
        return "".join(f"{json.dumps(_without(json.loads(each)))}\n" for each in lines)
    except (ForgeError, ValueError) as error:
        return f"{error}\n"


def _without(value: Any) -> Any:
    """The same without what a job works on."""
    if isinstance(value, dict):
        return {
            name: "(left out)" if name in _PRIVATE else _without(inner)
            for name, inner in value.items()
        }
    return [_without(inner) for inner in value] if isinstance(value, list) else value


def _end(path: Path) -> str | None:
    """The last bytes of a log, from the beginning of a line on."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - LOG_BYTES))
            data = file.read(LOG_BYTES)
    except OSError:
        return None
    if size > LOG_BYTES:
        data = data.partition(b"\n")[2]
    return data.decode("utf-8", "replace")
