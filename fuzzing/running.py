"""Runs the fuzzer on a target, and reads what it came to."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from fuzzing import FOUND, ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from fuzzing.target import Target

#: Bytes of an input that the fuzzer makes, and MiB of memory that it may use.
MAX_BYTES, MAX_MEMORY = 4096, 2048
#: Seconds that one input may take until it counts as one that hangs.
HANGS = 25
#: Seconds for a process to begin and to end, besides those that it fuzzes.
AROUND = 120
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
    command = [
        *(sys.executable, "-m", "fuzzing.one", target.name, "--"),
        *(
            f"-max_total_time={seconds}",
            f"-max_len={MAX_BYTES}",
            "-print_final_stats=1",
        ),
        *(f"-timeout={HANGS}", f"-rss_limit_mb={MAX_MEMORY}", f"-dict={words}"),
        *(f"-artifact_prefix={crashes}/", *map(str, folders)),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=seconds + AROUND,
        check=False,
    )
    said = done.stdout + done.stderr
    reached = _REACHED.findall(said)
    executed = _EXECUTED.search(said)
    found = tuple(sorted(file for file in crashes.iterdir() if file.is_file()))
    broken = done.returncode != 0 or executed is None
    return Outcome(
        target.name,
        int(executed[1]) if executed else 0,
        int(reached[-1][0]) if reached else 0,
        int(reached[-1][2]) if reached else 0,
        found,
        said[-4000:] if broken else "",
    )


def _quoted(word: bytes) -> str:
    """As a dictionary of libFuzzer has it."""
    return "".join(f"\\x{byte:02x}" for byte in word)
