"""Runs the fuzzer on a target, and reads what it came to. The only one with atheris."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import traceback
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import atheris

from fuzzing import FOUND

if TYPE_CHECKING:
    from pathlib import Path

    from fuzzing.target import Target

#: Bytes of an input that the fuzzer makes, and MiB of memory that it may use.
MAX_BYTES, MAX_MEMORY = 4096, 2048
#: Seconds that one input may take until it counts as one that hangs.
HANGS = 25
_REACHED = re.compile(r"cov: (\d+) ft: (\d+) corp: (\d+)")
_EXECUTED = re.compile(r"stat::number_of_executed_units:\s*(\d+)")


class Outcome(NamedTuple):
    """What became of fuzzing one target."""

    name: str
    executions: int
    #: Branches of the product that were reached.
    reached: int
    #: Inputs that are kept since each reaches something more.
    kept: int
    #: The files of those that broke it.
    crashes: tuple[Path, ...]
    #: The end of what the fuzzer said, where it came to no good end.
    said: str = ""

    @property
    def good(self) -> bool:
        return not self.crashes and not self.said


def fuzz(target: Target, seconds: int, place: Path) -> Outcome:
    """Fuzz for so long, or until something breaks. What is learned stays in `place`."""
    corpus, seeds, crashes = (place / name for name in ("corpus", "seeds", "crashes"))
    for folder in (corpus, seeds, crashes):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds):
        (seeds / f"{number}").write_bytes(seed)
    known = FOUND / target.name
    folders = [corpus, seeds, *([known] if known.is_dir() else [])]
    words = place / "words"
    words.write_text("".join(f'"{_quoted(word)}"\n' for word in target.words))
    options = [
        *(
            f"-max_total_time={seconds}",
            f"-max_len={MAX_BYTES}",
            "-print_final_stats=1",
        ),
        *(f"-timeout={HANGS}", f"-rss_limit_mb={MAX_MEMORY}", f"-dict={words}"),
        f"-report_slow_units={HANGS}",
        *(f"-artifact_prefix={crashes}/", *map(str, folders)),
    ]
    log = place / "log"
    before = set(crashes.iterdir())
    status = _apart(target, options, crashes, log)
    said = log.read_text(errors="replace")
    reached = _REACHED.findall(said)
    executed = _EXECUTED.search(said)
    found = tuple(sorted(set(crashes.iterdir()) - before))
    return Outcome(
        target.name,
        int(executed[1]) if executed else 0,
        int(reached[-1][0]) if reached else 0,
        int(reached[-1][2]) if reached else 0,
        found,
        said[-4000:] if status != 0 or executed is None else "",
    )


def _apart(target: Target, options: list[str], crashes: Path, log: Path) -> int:
    """The exit status of a process that fuzzes.

    It is a fork of this one, so what is measured is imported once for all targets. The
    fuzzer ends it after its time, and when an input takes too long.
    """
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    try:
        fd = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(fd, sys.stdout.fileno())
        os.dup2(fd, sys.stderr.fileno())
        for data in target.repeated():
            _kept(target, crashes, data)
        atheris.Setup(["fuzzing", *options], partial(_kept, target, crashes))
        atheris.Fuzz()
    except BaseException:  # noqa: BLE001 - it ends here, and its log says why
        traceback.print_exc()
    finally:
        os._exit(1)  # it never comes back from there


def _kept(target: Target, crashes: Path, data: bytes) -> None:
    try:
        target.check(data)
    except BaseException:
        # The fuzzer itself keeps only those that take too long or too much.
        (crashes / f"crash-{hashlib.sha256(data).hexdigest()[:12]}").write_bytes(data)
        raise


def _quoted(word: bytes) -> str:
    """As a dictionary of libFuzzer has it."""
    return "".join(f"\\x{byte:02x}" for byte in word)
