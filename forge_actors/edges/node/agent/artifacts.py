"""Collecting the artifacts of a job: a step that follows it, see `collecting`."""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import collecting
from forge_actors.edges.node.agent.spawn import FOLDER

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.order import Order

#: Seconds beyond its own limit after which the program is ended, and its limit when the
#: service is gone.
_BEYOND, OWNER_LIMIT = 5.0, 3.0
#: What it needs of a job's environment: by these its processes are known.
_MARKS = b"FORGE_"

with open(collecting.__file__, encoding="utf-8") as _file:
    #: The program, as it is when the agent is loaded.
    PROGRAM = _file.read()


def fill(order: Order, job: Order, *, owner_gone: bool) -> None:
    """Make `order` that of the program for this job."""
    wanted = job.artifacts
    assert wanted is not None
    seconds: float = wanted["seconds"]
    if owner_gone:
        seconds = min(seconds, OWNER_LIMIT)
    order.folder, job.folder = job.folder, None
    told = {
        **wanted,
        # It has that one as a descriptor, where it can be given one.
        "folder": job.cwd.decode("latin-1") if order.folder is None else FOLDER,
        "job": job.key[0],
        "attempt": job.key[1],
        "seconds": seconds,
    }
    order.argv = [
        os.fsencode(sys.executable),
        *(b"-I", b"-S", b"-c", PROGRAM.encode()),
        json.dumps(told).encode(),
    ]
    marks = {n: value for n, value in job.env.items() if n.startswith(_MARKS)}
    order.env = {**marks, b"LC_ALL": b"C.UTF-8", b"PYTHONUTF8": b"1"}
    order.cwd = b"/"
    order.worktree = None
    order.limits = None
    order.stop_signal = signal.SIGTERM
    order.wall = seconds + _BEYOND


def outcome(receipt: dict[str, Any]) -> dict[str, Any]:
    """What became of it, of the receipt of the program: see `domain.launch`."""
    code = receipt.get("exit_code")
    if code in (0, collecting.PARTIAL):
        return {"left_out": True} if code else {}
    if receipt["ending"] == "wall":
        return {"error": "it took too long"}
    if "signal" in receipt:
        return {"error": f"it was ended by {receipt['signal']}"}
    return {"error": "it failed, see the end of the job's stderr"}
