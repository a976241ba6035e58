"""The log of a service: one line an event, without secrets, in a file of bounded size.

What it says, and what Python says when it dies, goes to standard error. Where that is a
file in the home, the descriptor is pointed at a new file when this one has become too
large, when somebody has moved it away, and when the service is told to look (SIGHUP).
So nothing is ever written to a file that nobody will read.
"""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.redaction import bounded, redact
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.log_settings import LogSettings
from forge_actors.runtime.sources import SETTINGS_FILE, load

if TYPE_CHECKING:
    from pathlib import Path

#: Characters of one event; a longer one says that it was cut.
MAX_EVENT = 16 * 1024
_OUTPUTS = (1, 2)
#: What could end a line, move a cursor, or turn text around.
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)


def shown(text: str) -> str:
    """On one line, without secrets, what could do harm in a terminal spelled out."""
    text = bounded(redact(text), MAX_EVENT)
    return _UNSAFE.sub(lambda found: _spelled(found[0]), text)


def _spelled(char: str) -> str:
    plain = {"\n": r"\n", "\t": r"\t", "\r": r"\r"}.get(char)
    return plain or f"\\u{ord(char):04x}"


class _Lines(logging.Formatter):
    """For people: the time, the level, who says it, and what."""

    def format(self, record: logging.LogRecord) -> str:
        text = _words(record)
        at = timestamp(record.created)
        return f"{at} {record.levelname} {record.name}: {shown(text)}"


class _Objects(logging.Formatter):
    """For programs: an object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told = {
            "at": timestamp(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": bounded(redact(record.getMessage()), MAX_EVENT),
        }
        if trace := _trace(record):
            told["trace"] = bounded(redact(trace), MAX_EVENT)
        return json.dumps(told)


def _words(record: logging.LogRecord) -> str:
    trace = _trace(record)
    message = record.getMessage()
    return f"{message}\n{trace}" if trace else message


def _trace(record: logging.LogRecord) -> str:
    parts = []
    if record.exc_info:
        parts.append(logging.Formatter().formatException(record.exc_info))
    if record.stack_info:
        parts.append(record.stack_info)
    return "\n".join(parts)


class ServiceLog(logging.Handler):
    """Writes to standard error, which may be the file `path`.

    Only one thread at a time is in it, as `logging` sees to.
    """

    def __init__(self, settings: LogSettings, path: Path | None = None) -> None:
        super().__init__()
        self._path = path
        self._size = settings.size
        self._kept = settings.kept
        self.setFormatter(_Objects() if settings.format == "json" else _Lines())
        self.setLevel(settings.level.upper())

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.format(record)
        except Exception as error:  # noqa: BLE001 - whoever logs is not to fail with it
            line = f"{record.name}: an event cannot be shown: {type(error).__name__}"
        # On a full disk there is nobody left to tell.
        if self._path is not None:
            with suppress(OSError):
                self._look(self._path)
        with suppress(OSError):
            _write(f"{line}\n".encode("utf-8", "backslashreplace"))

    def reopen(self) -> None:
        """Write to the file that has the name now, made if there is none."""
        if self._path is None:
            return
        self.acquire()
        try:
            with suppress(OSError):
                _point_at(self._path)
        finally:
            self.release()

    def _look(self, path: Path) -> None:
        now = os.fstat(_OUTPUTS[-1])
        if now.st_size >= self._size:
            self._move_away(path)
            _point_at(path)
        elif _identity(path) != (now.st_dev, now.st_ino):
            _point_at(path)

    def _move_away(self, path: Path) -> None:
        """Make room for a new file; the oldest one goes."""
        older = [path, *(_numbered(path, n) for n in range(1, self._kept + 1))]
        for new, old in zip(older[:0:-1], older[-2::-1], strict=True):
            with suppress(FileNotFoundError):
                os.replace(old, new)
        if not self._kept:
            path.unlink(missing_ok=True)


def _numbered(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}.{number}")


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


def _point_at(path: Path) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(path, flags, 0o600)
    try:
        for output in _OUTPUTS:
            os.dup2(opened, output)
    finally:
        os.close(opened)


def _write(data: bytes) -> None:
    while data:
        data = data[os.write(_OUTPUTS[-1], data) :]


def reopen() -> None:
    """Write to the file that has the name of the log now."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, ServiceLog):
            handler.reopen()


def begin(settings: LogSettings, path: Path | None) -> None:
    """Have everything that is logged from now on said in this way."""
    handler = ServiceLog(settings, path)
    root = logging.getLogger()
    for other in root.handlers[:]:
        root.removeHandler(other)
    root.addHandler(handler)
    root.setLevel(settings.level.upper())


def settings_of(home: Path) -> LogSettings:
    """Those of a home; where they are wrong, whoever opens it says so."""
    try:
        return load(home / SETTINGS_FILE).settings.log
    except ForgeError:
        return LogSettings()
