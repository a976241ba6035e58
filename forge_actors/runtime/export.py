"""A home in one file, for another machine: its store, output, prompts and settings.

Secrets stay where they are; the file names them. Sockets, locks, receipts and whatever
else belongs to living processes means nothing elsewhere.
"""

from __future__ import annotations

import io
import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from forge_actors import __version__
from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.domain.templates import TEMPLATES_FILE
from forge_actors.edges.archive import Writer, writing
from forge_actors.edges.sqlite.checking import refuse_marked
from forge_actors.edges.sqlite.copying import Contents, copy_store
from forge_actors.runtime.backup import check_target
from forge_actors.runtime.homes import LOGS, PROMPTS, STORE_FILE
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.sources import SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator

MANIFEST = "manifest.json"
#: What an export is, as its manifest says it.
FORMAT = "forge-actors-home"
FORMAT_VERSION = 1
#: The name of a file with output of a job.
LOG_NAME = re.compile(r"[0-9a-z]{1,64}\.[0-9]{1,9}\.(stdout|stderr)(\.tail|\.times)?")
#: The name of a file with a prompt: its digest.
PROMPT_NAME = re.compile(r"[0-9a-f]{64}")


class Exported(NamedTuple):
    contents: Contents
    #: Files with output, and the bytes in all of them.
    logs: int
    log_bytes: int
    secrets: list[str]


def export(home: Path, file: Path, now: float, *, overwrite: bool = False) -> Exported:
    """Write a home, served or not, to a tar file that only its owner can read.

    Raises:
        NotFound: the home has no store.
        InvalidInput, Refused: nothing may be written to `file`.
        StoreDamaged, StoreFromTheFuture, StoreFailed: it cannot be copied.
    """
    source = home / STORE_FILE
    refuse_marked(source)
    if not source.exists():
        raise NotFound(f"there is no store in {home}")
    check_target(home, file, overwrite=overwrite)
    secrets = SecretFolder(home).names()
    # Beside the file: it needs as much room there anyway.
    with (
        tempfile.TemporaryDirectory(prefix=".export-", dir=file.parent) as work,
        writing(file) as out,
    ):
        copy = Path(work) / STORE_FILE
        contents = copy_store(source, copy)
        writer = Writer(out, int(now))
        _add(writer, STORE_FILE, copy)
        for name in (SETTINGS_FILE, TEMPLATES_FILE):
            if (home / name).exists():
                _add(writer, name, home / name)
        for log in _files(home / LOGS, LOG_NAME):
            _add(writer, f"{LOGS}/{log.name}", log)
        for prompt in _files(home / PROMPTS, PROMPT_NAME):
            _add(writer, f"{PROMPTS}/{prompt.name}", prompt)
        logs = [m.size for name, m in writer.members.items() if name.startswith(LOGS)]
        _add_manifest(writer, now, secrets)
        writer.end()
    return Exported(contents, len(logs), sum(logs), secrets)


def _files(folder: Path, names: re.Pattern[str]) -> Iterator[Path]:
    """The files of a folder that are named so, in the order of their names."""
    try:
        paths = sorted(folder.iterdir())
    except FileNotFoundError:
        return
    for path in paths:
        if names.fullmatch(path.name):
            yield path


def _add(writer: Writer, name: str, path: Path) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with open(os.open(path, flags), "rb") as file:
            # What a job that runs writes from here on is not in it.
            writer.add(name, file, os.fstat(file.fileno()).st_size)
    except FileNotFoundError:
        return
    except OSError as error:
        raise StoreFailed(f"{path} was not exported: {error.strerror}") from error


def _add_manifest(writer: Writer, now: float, secrets: list[str]) -> None:
    """Last, as it tells the hashes: a file that was cut off has none."""
    told = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "release": __version__,
        "made_at": now,
        "secrets": secrets,
        "files": {name: member._asdict() for name, member in writer.members.items()},
    }
    text = json.dumps(told, indent=1).encode()
    writer.add(MANIFEST, io.BytesIO(text), len(text))
