"""A service that counts the bytecodes it executes: `python -m benchmarks.counted ...`.

The words behind are those of `forge-actors`. The signal BEGIN begins to count, END ends
it and writes by module and function what was counted to the file in BYTECODES.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from forge_actors.cli.main import main

if TYPE_CHECKING:
    from types import CodeType, FrameType

#: No others are free: the service has uses for its own.
BEGIN, END = signal.SIGRTMIN, signal.SIGRTMIN + 1
counts: Counter[CodeType] = Counter()


def trace(frame: FrameType, event: str, _: object) -> Any:
    frame.f_trace_opcodes = True
    frame.f_trace_lines = False
    if event == "opcode":
        counts[frame.f_code] += 1
    return trace


def begin(*_: object) -> None:
    counts.clear()
    sys.settrace(trace)


def end(*_: object) -> None:
    sys.settrace(None)
    found: Counter[str] = Counter()
    for code, count in counts.items():
        found[f"{code.co_filename}:{code.co_qualname}"] += count
    place = Path(os.environ["BYTECODES"])
    place.with_suffix(".new").write_text(json.dumps(found))
    place.with_suffix(".new").rename(place)


if __name__ == "__main__":
    signal.signal(BEGIN, begin)
    signal.signal(END, end)
    sys.exit(main(sys.argv[1:]))
