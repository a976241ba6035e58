"""A controller with workers, as processes that a test may kill.

    python -m tests.acceptance.epic_locks_program COMMON_DIR WORKERS MODE

It tells the pids of its workers and of what they have started, and then ends as the
mode says: `wait` at the end of its input, `fail` with an exception; `unlock` too, where
its lock is given back as it must not be. It tells of each unlock that it does.
"""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys

from forge_actors.edges.epic import flock
from forge_actors.edges.epic.inherited import keep, prove
from forge_actors.edges.epic.locks import FileControllerLock, FileLocks
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.edges.machine import lives, own_identity

MODULE = "tests.acceptance.epic_locks_program"
#: It lives until its input ends, and inherits whatever it is not kept from.
LEFT = [sys.executable, "-I", "-S", "-c", "import os; os.read(0, 1)"]


def tell_of_unlocks(event: str, arguments: tuple[object, ...]) -> None:
    if event == "fcntl.flock" and arguments[1] == fcntl.LOCK_UN:
        print("unlocked", flush=True)


def controller(common_dir: str, workers: int, mode: str) -> None:
    sys.addaudithook(tell_of_unlocks)
    root = FolderRoot(common_dir)
    locks = FileLocks(root, own_identity(), lives, check=lambda root: None)
    mine = locks.take_controller()
    if mode == "unlock":
        FileControllerLock.close = (  # type: ignore[method-assign]
            lambda self: flock.unlock(self.share())
        )
    try:
        for issue in range(1, workers + 1):
            run = locks.take_run(issue)
            both = mine.share(), run.hand_off()
            numbers = [str(each) for each in both]
            command = [sys.executable, "-m", MODULE, common_dir, str(issue), *numbers]
            child = subprocess.Popen(
                command, pass_fds=both, stdout=subprocess.PIPE, start_new_session=True
            )
            run.close()
            assert child.stdout is not None
            print(child.pid, child.stdout.readline().decode().strip(), flush=True)
        print("ready", flush=True)
        if mode == "wait":
            os.read(0, 1)
        else:
            raise RuntimeError("the controller fails")
    finally:
        mine.close()


def worker(common_dir: str, issue: int, *numbers: int) -> None:
    keep(*numbers)
    root = FolderRoot(common_dir)
    prove(root, issue, *numbers)
    left = subprocess.Popen(LEFT, close_fds=False, start_new_session=True)
    print(left.pid, flush=True)
    signal.pause()


if __name__ == "__main__":
    if len(sys.argv) == 4:
        controller(sys.argv[1], int(sys.argv[2]), sys.argv[3])
    else:
        worker(sys.argv[1], *map(int, sys.argv[2:]))
