"""The clean-up program with classes that do what the rules of the order say.

Run as a program, in place of the real one: its process, its talk and its run are real.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from forge_actors.domain.cleaning import ClassReport, CleanClass, Removal
from forge_actors.runtime.cleanup import __main__ as program
from forge_actors.runtime.cleanup.classes import CLEANERS

if TYPE_CHECKING:
    from forge_actors.domain.cleaning import Desk


class Behaving:
    def __init__(self, name: CleanClass) -> None:
        self.name = name

    def run(self, desk: Desk, cursor: str | None) -> ClassReport:
        how = desk.rules.get("behave", {}).get(self.name, "")
        verb, _, rest = how.partition(":")
        report = ClassReport(self.name)
        match verb:
            case "crash":
                print("something went wrong", file=sys.stderr, flush=True)
                os._exit(9)
            case "hang":
                time.sleep(1000)
            case "spin":
                while True:
                    pass
            case "fail":
                raise RuntimeError(rest)
            case "memory":
                kept = [bytes(1 << 20) for _ in range(int(rest))]
                desk.scanned(len(kept))
            case "babble":
                os.write(1, b"not what a program says\n")
                print("nor this")
            case "children":
                # One in the group, one that left it, as a daemon does.
                away = {"start_new_session": True}
                for options in ({}, away):
                    child = subprocess.Popen(["sleep", "1000"], **options)  # type: ignore[call-overload]
                    with open(rest, "a", encoding="ascii") as file:
                        file.write(f"{child.pid}\n")
                time.sleep(1000)
            case "show":
                with open(rest, "w", encoding="utf-8") as file:
                    file.write("\n".join(shown()))
            case "forget":
                for job in desk.forget_jobs(rest.split(",")):
                    desk.removed(Removal("jobs", job, "it is old"))
            case "upkeep":
                desk.upkeep()
            case _:
                assert how == "", how
        return report


def shown() -> list[str]:
    """What the process is like."""
    import resource

    with open("/proc/self/stat", encoding="ascii") as stat:
        session = stat.read().rpartition(")")[2].split()[3]
    fds = sorted(
        os.readlink(entry)
        for entry in Path("/proc/self/fd").iterdir()
        if entry.exists()
    )
    return [
        f"pid {os.getpid()}",
        f"session {session}",
        f"data {resource.getrlimit(resource.RLIMIT_DATA)[0]}",
        f"cpu {resource.getrlimit(resource.RLIMIT_CPU)[0]}",
        f"worker {os.environ.get('FORGE_RUNTIME_MAINTENANCE_WORKER')}",
        f"secret {os.environ.get('SOMEBODYS_SECRET')}",
        *(f"open {place}" for place in fds if not place.startswith("/proc/")),
    ]


if __name__ == "__main__":
    CLEANERS.update({name: Behaving(name) for name in get_args(CleanClass)})
    status = program.main()
    sys.stderr.flush()
    os._exit(status)
