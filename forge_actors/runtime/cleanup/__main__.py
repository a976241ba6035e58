"""The process of the clean-up: alone, last in line for everything, and gone with its
owner.

Who started it has given it a session, its limits and its place in line. What it does
itself is to end with all that it has started, as soon as it is told to or its owner is
gone.
"""

from __future__ import annotations

import ctypes
import logging
import os
import signal
import sys

from forge_actors.edges.cleanup.marked import MARK, end_marked
from forge_actors.runtime.cleanup.program import clean
from forge_actors.runtime.cleanup.talk import OwnerTalk, RunOver

#: From prctl(2): a signal for this process when its parent ends.
PR_SET_PDEATHSIG = 1
#: Exit status of a run that was over before its end.
OVER = 3


def main() -> int:
    """One run; the exit status."""
    logging.basicConfig(format="%(name)s: %(message)s", level=logging.WARNING)
    parent = os.getppid()
    signal.signal(signal.SIGTERM, _end_all)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _end_with_parent()
    if os.getppid() != parent:
        _end_all()
    # What is printed by accident must not be taken for something that was said.
    say = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    talk = OwnerTalk(sys.stdin.buffer, say, _end_all)
    try:
        clean(talk.order(), talk)
    except RunOver as over:
        print(over, file=sys.stderr)
        return OVER
    return 0


def _end_all(*_: object) -> None:
    """End this process and what it has started, at once."""
    if (mark := os.environ.get(MARK)) is not None:
        end_marked(mark, spared=os.getpid())
    if os.getpgid(0) == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(OVER)


def _end_with_parent() -> None:
    """Have the system tell us when the thread that started us is gone."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)


if __name__ == "__main__":
    status = main()
    # Not by the usual way: the thread that reads holds the pipe, and nothing is left.
    sys.stderr.flush()
    os._exit(status)
