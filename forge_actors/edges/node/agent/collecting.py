"""The program that collects the artifacts of a job, run by itself.

Its one argument says in JSON which files of which folder go where. They are copied into
a draft, each under a number, with a manifest that is written last; then the draft gets
the name of the attempt. So there is all of it or nothing. No link is followed, neither
in the folder nor where it writes. Exit status 0: all that was asked for; 3: something
was left out, as the manifest says; any other: nothing was collected.

The agent keeps this text and not the file, which an upgrade may have replaced.
"""

from __future__ import annotations

import errno
import fnmatch
import hashlib
import json
import os
import re
import shutil
import signal
import stat
import sys
import time
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

#: Names that are looked at in all, and folders one may be deep.
MAX_SEEN, MAX_DEPTH = 200_000, 64
#: Of what is left out so many are named, with so many characters.
MAX_NAMED, MAX_SHOWN = 100, 1024
#: Bytes that are copied at once.
PIECE = 1 << 20
#: Exit status when something was left out.
PARTIAL = 3
MANIFEST = "manifest.json"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
#: What a disk says that takes nothing more.
_FULL = (errno.ENOSPC, errno.EDQUOT)
#: What nobody wants of a repository, whatever a pattern says.
_NEVER = ".git"

#: The number of a pattern, and what of it is still to be matched.
Rest = tuple[int, tuple[str, ...]]


class Stopped(Exception):
    """Nothing more is collected; what there is counts."""


class LeftOut(Exception):
    """One file is not collected."""


class Ended(BaseException):
    """Somebody wants no more of it."""


def main(wanted: dict[str, Any]) -> int:
    folder = wanted["folder"]
    if isinstance(folder, str):
        folder = os.open(_name(folder), _FOLDER)
    place = _made(os.open(_name(wanted["home"]), _FOLDER), "artifacts", wanted["job"])
    attempt = str(wanted["attempt"])
    draft = f".{attempt}.{os.getpid()}"
    os.mkdir(draft, dir_fd=place)
    into = os.open(draft, _FOLDER, dir_fd=place)
    try:
        collector = Collector(wanted, into)
        collector.collect(folder, [_name(pattern) for pattern in wanted["patterns"]])
        collector.write_manifest()
        os.fsync(into)
        os.rename(draft, attempt, src_dir_fd=place, dst_dir_fd=place)
    except BaseException:
        with suppress(OSError):
            shutil.rmtree(draft, dir_fd=place)
        raise
    os.fsync(place)
    return PARTIAL if collector.left_out else 0


def _name(text: str) -> str:
    """Paths travel as latin-1, one character a byte."""
    return os.fsdecode(text.encode("latin-1"))


def _made(parent: int, *names: str) -> int:
    for name in names:
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=parent)
            os.fsync(parent)
        parent = os.open(name, _FOLDER, dir_fd=parent)
    return parent


class Patterns:
    """What may still match below a folder."""

    def __init__(self, rests: Iterable[Rest]) -> None:
        self._rests = {rest for each in rests for rest in _shorter(each)}

    def __bool__(self) -> bool:
        return bool(self._rests)

    def meet(self, name: str) -> tuple[set[int], Patterns]:
        """The patterns that mean this name itself, and what may match below it."""
        meant: set[int] = set()
        below: list[Rest] = []
        for number, (part, *others) in self._rests:
            if part == "**":
                if name.startswith("."):
                    continue
                below.append((number, (part, *others)))
            elif not _fits(name, part):
                continue
            elif others:
                below.append((number, tuple(others)))
            if not others:
                meant.add(number)
        return meant, Patterns(below)


def _shorter(rest: Rest) -> Iterator[Rest]:
    """A pattern, also as it is where `**` stands for no folder at all."""
    number, parts = rest
    yield rest
    while parts[0] == "**" and len(parts) > 1:
        parts = parts[1:]
        yield number, parts


@cache
def _matcher(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def _fits(name: str, part: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return _matcher(part).match(name) is not None


class Collector:
    """Walks the folder, and copies what is meant into the draft."""

    def __init__(self, wanted: dict[str, Any], draft: int) -> None:
        self._draft = draft
        self._most_files: int = wanted["files"]
        self._most_bytes: int = wanted["bytes"]
        self._seconds: float = wanted["seconds"]
        self._until = time.monotonic() + self._seconds
        self._files: list[dict[str, object]] = []
        self._bytes = 0
        self._seen = 0
        self._matched: set[int] = set()
        self.left_out: list[dict[str, str]] = []
        self._more = 0

    def collect(self, folder: int, patterns: list[str]) -> None:
        rests = [(n, tuple(text.split("/"))) for n, text in enumerate(patterns)]
        try:
            self._walk(folder, "", Patterns(rests), whole=False, depth=0)
        except Stopped as reason:
            self._leave_out("", str(reason))
        else:
            for number in sorted(set(range(len(patterns))) - self._matched):
                self._leave_out(patterns[number], "nothing matches it")

    def write_manifest(self) -> None:
        told = {
            "version": 1,
            "files": self._files,
            "left_out": self.left_out,
            "left_out_more": self._more,
        }
        fd = os.open(MANIFEST, _NEW, 0o600, dir_fd=self._draft)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(told, file, ensure_ascii=True)
            file.flush()
            os.fsync(fd)

    def _leave_out(self, path: str, reason: str) -> None:
        if len(self.left_out) < MAX_NAMED:
            shown = path.encode("utf-8", "backslashreplace").decode()[:MAX_SHOWN]
            self.left_out.append({"path": shown, "reason": reason})
        else:
            self._more += 1

    def _walk(
        self, folder: int, prefix: str, below: Patterns, *, whole: bool, depth: int
    ) -> None:
        """Take what is meant in a folder; if it is meant as a `whole`, all of it."""
        if depth > MAX_DEPTH:
            self._leave_out(prefix, f"it is more than {MAX_DEPTH} folders deep")
            return
        for name, mode in self._entries(folder, prefix):
            meant, further = below.meet(name)
            self._matched |= meant
            takes = whole or bool(meant)
            path = prefix + name
            if stat.S_ISDIR(mode):
                if name != _NEVER and (takes or further):
                    self._enter(folder, name, path, further, whole=takes, depth=depth)
            elif takes:
                self._take(folder, name, path, mode)

    def _entries(self, folder: int, prefix: str) -> list[tuple[str, int]]:
        found = []
        try:
            with os.scandir(folder) as entries:
                for entry in islice(entries, MAX_SEEN - self._seen + 1):
                    with suppress(FileNotFoundError):
                        mode = entry.stat(follow_symlinks=False).st_mode
                        found.append((entry.name, mode))
        except OSError as error:
            self._leave_out(prefix, _why(error))
        self._seen += len(found)
        if self._seen > MAX_SEEN:
            raise Stopped(f"more than {MAX_SEEN} names are there: say where to look")
        self._check_time()
        return sorted(found)

    def _enter(
        self,
        folder: int,
        name: str,
        path: str,
        below: Patterns,
        *,
        whole: bool,
        depth: int,
    ) -> None:
        try:
            inner = os.open(name, _FOLDER, dir_fd=folder)
        except OSError as error:
            self._leave_out(f"{path}/", _why(error))
            return
        try:
            self._walk(inner, f"{path}/", below, whole=whole, depth=depth + 1)
        finally:
            os.close(inner)

    def _take(self, folder: int, name: str, path: str, mode: int) -> None:
        kept = str(len(self._files) + 1)
        try:
            if stat.S_ISLNK(mode):
                raise LeftOut("it is a link")
            if not stat.S_ISREG(mode):
                raise LeftOut("it is no regular file")
            if len(self._files) >= self._most_files:
                raise LeftOut(f"over the limit of {self._most_files} files")
            try:
                path.encode()
            except UnicodeEncodeError:
                raise LeftOut("its name is not UTF-8") from None
            size, digest, executable = self._copy(folder, name, kept)
        except LeftOut as reason:
            self._leave_out(path, str(reason))
            return
        self._bytes += size
        told: dict[str, object] = {"path": path, "bytes": size, "sha256": digest}
        if executable:
            told["executable"] = True
        self._files.append({**told, "name": kept})

    def _copy(self, folder: int, name: str, kept: str) -> tuple[int, str, bool]:
        """Its size, its digest and whether it can be run; nothing is left of it if it
        cannot be copied as it was at one moment."""
        try:
            source = os.open(name, _FILE, dir_fd=folder)
        except OSError as error:
            raise LeftOut(_why(error)) from None
        try:
            status = os.fstat(source)
            if not stat.S_ISREG(status.st_mode):
                raise LeftOut("it is no regular file")
            if self._bytes + status.st_size > self._most_bytes:
                raise LeftOut(f"over the limit of {self._most_bytes} bytes in all")
            target = os.open(kept, _NEW, 0o600, dir_fd=self._draft)
            try:
                digest = self._copy_bytes(source, target, status)
            except BaseException:
                os.unlink(kept, dir_fd=self._draft)
                raise
            finally:
                os.close(target)
        finally:
            os.close(source)
        return status.st_size, digest, bool(status.st_mode & stat.S_IXUSR)

    def _copy_bytes(self, source: int, target: int, status: os.stat_result) -> str:
        digest = hashlib.sha256()
        left = status.st_size
        try:
            while piece := os.read(source, PIECE):
                left -= len(piece)
                if left < 0:
                    break
                digest.update(piece)
                while piece:
                    piece = piece[os.write(target, piece) :]
                self._check_time()
            os.fsync(target)
        except OSError as error:
            if error.errno in _FULL:
                raise Stopped("the disk of the home takes nothing more") from None
            raise LeftOut(_why(error)) from None
        now = os.fstat(source)
        same = (now.st_size, now.st_mtime_ns) == (status.st_size, status.st_mtime_ns)
        if left or not same:
            raise LeftOut("it changed while it was read")
        return digest.hexdigest()

    def _check_time(self) -> None:
        if time.monotonic() > self._until:
            raise Stopped(f"it took longer than {self._seconds:g} s")


def _why(error: OSError) -> str:
    if error.errno in (errno.ELOOP, errno.ENOTDIR):
        return "it is a link"
    return error.strerror or type(error).__name__


def _end(_number: int, _frame: object) -> None:
    raise Ended


if __name__ == "__main__":
    os.umask(0o077)
    signal.signal(signal.SIGTERM, _end)
    try:
        sys.exit(main(json.loads(sys.argv[1])))
    except Ended:  # nothing of it is left
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)
    except OSError as problem:
        sys.exit(f"the artifacts were not collected: {problem.strerror}")
