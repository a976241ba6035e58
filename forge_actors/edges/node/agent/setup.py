"""The program that sets a worktree up, and then becomes the job.

    setup.py STATE ROOT SECONDS COUNT COMMAND... PROGRAM ARGUMENT...

It runs the commands one after the other in ROOT, in SECONDS altogether, and writes to
STATE how far it is, so that the node agent can tell their end from that of the job. It
is started for jobs with commands only, imports nothing of ours, and has their output.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from time import monotonic

#: Seconds between the signal to a command that takes too long and its kill.
GRACE = 2.0
#: Longest time, in seconds, that is counted at once: not what it is suspended for.
SLICE = 2.0


def main(arguments: list[str]) -> int:
    """Does not return if the job can be started."""
    state, root, seconds, count = arguments[:4]
    commands, job = arguments[4 : 4 + int(count)], arguments[4 + int(count) :]
    left = float(seconds)
    for command in commands:
        tell(state, {"done": False, "command": command})
        problem, left = run(command, root, left)
        if problem is not None:
            if left <= 0:
                problem += f", they have {float(seconds):g} s altogether"
            tell(state, {"done": False, "command": command, "why": problem})
            print(f"forge-actors: set-up {problem}: {command}", file=sys.stderr)
            return 1
    tell(state, {"done": True})
    # Python ignores them, and the job would too.
    for number in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvp(job[0], job)  # noqa: S606 - a shell is not asked for
    except OSError as error:
        why = f"the program {job[0]} could not be started: {error.strerror}"
        tell(state, {"done": True, "start": why})
    return 127


def run(command: str, root: str, left: float) -> tuple[str | None, float]:
    """Run a command; why it did not succeed, and how many seconds are left."""
    process = subprocess.Popen(
        ["/bin/sh", "-c", command],
        cwd=root,
        stdin=subprocess.DEVNULL,
        process_group=0,
    )
    while left > 0:
        began = monotonic()
        wait = min(left, SLICE)
        try:
            code = process.wait(wait)
        except subprocess.TimeoutExpired:
            left -= wait
            continue
        left -= min(wait, monotonic() - began)
        if code == 0:
            return None, left
        how = f"exited with {code}" if code > 0 else f"was ended by {name_of(-code)}"
        return how, max(left, SLICE)
    end(process)
    return "took too long", 0.0


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command with all that it started in its group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
        except ProcessLookupError:
            break
        try:
            process.wait(GRACE)
            # What it had started may take a moment longer, or not end at all.
        except subprocess.TimeoutExpired:
            continue
    process.wait()


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def tell(state: str, told: dict[str, object]) -> None:
    """Write down how far it is, whole or not at all."""
    draft = f"{state}.draft"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(draft, flags, 0o600)
    with open(fd, "w", encoding="utf-8", errors="surrogateescape") as file:
        json.dump(told, file, ensure_ascii=False)
    os.rename(draft, state)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
