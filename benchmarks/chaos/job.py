"""A job of a chaos run: writes down itself that it ran, and how it ended.

`python -I -S job.py FILE SECONDS CODES CHILD LINGER DEAF [LOCK...]`

A line is one append, synced: a word, the job, the attempt, the fence, the process, the
nanoseconds of the monotonic clock, and what the word needs. `begin`; `overlap LOCK`:
another process holds what this job claims; `end CODE`.

The locks are the kernel's, so they last as long as the last process of the job, its
children included. CODES are the exit codes of the attempts; further ones exit with the
last.
"""

import fcntl
import os
import signal
import sys
import time


def main() -> None:
    path, seconds, codes, child, linger, deaf, *locks = sys.argv[1:]
    job, attempt = os.environ["FORGE_JOB_ID"], int(os.environ["FORGE_ATTEMPT"])
    told = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def tell(word: str, *more: object) -> None:
        fence, moment = os.environ["FORGE_FENCE"], time.monotonic_ns()
        words = (word, job, attempt, fence, os.getpid(), moment, *more)
        os.write(told, " ".join(map(str, words)).encode() + b"\n")
        os.fsync(told)

    tell("begin")
    if deaf == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for lock in locks:
        if not take(lock):
            tell("overlap", lock)
    if child != "none":
        start_child(child, float(linger))
    time.sleep(float(seconds))
    exits = codes.split(",")
    code = int(exits[min(attempt, len(exits)) - 1])
    os.write(1, f"{job} attempt {attempt} ends with {code}\n".encode())
    tell("end", code)
    os._exit(code)


def take(lock: str) -> bool:
    """Lock `shared:PATH` or `alone:PATH` for good, if nobody is in the way."""
    how, _, path = lock.partition(":")
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(
            fd, (fcntl.LOCK_SH if how == "shared" else fcntl.LOCK_EX) | fcntl.LOCK_NB
        )
    except BlockingIOError:
        return False
    return True


def start_child(child: str, linger: float) -> None:
    """A process that outlives this one: `plain`, of its own `session`, or `hidden`."""
    if os.fork():
        return
    if child != "plain":
        os.setsid()
        os.close(1)
        os.close(2)
    if child == "hidden" and os.fork():
        os._exit(0)
    time.sleep(linger)
    os._exit(0)


if __name__ == "__main__":
    main()
