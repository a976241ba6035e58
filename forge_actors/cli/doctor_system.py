"""What `doctor` asks of the system: what it can do for processes."""

from __future__ import annotations

import os
import sys

from forge_actors.cli.doctor_check import Check

PR_SET_CHILD_SUBREAPER = 36


def system() -> list[Check]:
    """Everything that is asked of it."""
    return [_proc(), _subreaper(), _pidfd(), _cgroup(), _limits()]


def _proc() -> Check:
    if os.path.exists("/proc/self/stat"):
        return Check("proc", "ok", "/proc is mounted")
    return Check("proc", "missing", "no /proc: processes are found by psutil only")


def _subreaper() -> Check:
    if not sys.platform.startswith("linux"):
        return Check("subreaper", "missing", "only Linux has it")
    import ctypes

    # Of this process, which ends at once; nothing else changes.
    if ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0:
        return Check("subreaper", "ok", "orphans of jobs can be inherited")
    return Check("subreaper", "missing", "the kernel refuses it")


def _pidfd() -> Check:
    try:
        os.close(os.pidfd_open(os.getpid()))
    except (AttributeError, OSError) as error:
        return Check("pidfd", "missing", str(error))
    return Check("pidfd", "ok", "processes can be waited for without their parent")


def _cgroup() -> Check:
    from forge_actors.runtime.job_limits import limits_here

    here = limits_here()
    if here.cgroups is None:
        return Check("cgroup", "missing", here.reason)
    return Check(
        "cgroup", "ok", f"node agents and jobs with limits get one in {here.cgroups}"
    )


def _limits() -> Check:
    """What `--memory` and `--pids` of a job mean here."""
    from forge_actors.runtime.job_limits import limits_here

    here = limits_here()
    memory, pids = "memory per process", "pids per user"
    if here.memory_of_job:
        memory = "memory of the whole job"
    if here.pids_of_job:
        pids = "pids of the whole job"
    elif not here.pids:
        pids = "no pids of root"
    why = f" (rlimits, as {here.reason})" if here.reason else " (cgroups)"
    return Check("limits", "ok" if here.pids else "missing", f"{memory}, {pids}{why}")
