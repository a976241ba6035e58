"""Pid namespaces, in which a test is alone and can choose the pids of processes."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

#: Runs a command as the first process of a new one; all of it ends with `unshare`.
UNSHARE = ["unshare", *([] if os.geteuid() == 0 else ["-Ur"])]
UNSHARE += ["-mpf", "--mount-proc", "--kill-child"]


def _may_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*UNSHARE, "true"], capture_output=True).returncode == 0


needs_namespace = pytest.mark.skipif(
    not _may_unshare(), reason="needs root, or user namespaces, for a pid namespace"
)

#: For scripts that run in there.
CHOOSE_PID = """
def choose_pid(pid):
    with open("/proc/sys/kernel/ns_last_pid", "w") as file:
        file.write(str(pid - 1))
"""
