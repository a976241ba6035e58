"""The command of `--after-job`: run once nothing of the job is left.

Its output goes on in the job's log. The job's own result stands before it begins; what
becomes of the command is only told beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent.order import Order

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job

#: Seconds the command may take before it is killed, and when the service is gone.
LIMIT, OWNER_LIMIT = 60.0, 3.0
#: Longest grace of the command, in seconds.
GRACE = 2.0
#: In the receipt that is written first, and found alone only if the agent dies.
UNFINISHED = {"unfinished": True}


def order_for(job: Job, receipt: dict[str, Any], *, owner_gone: bool) -> Order:
    """An order for the same place and environment, and the news of the job's end."""
    order = job.order
    assert order.after_job is not None
    code = receipt.get("exit_code")
    after = Order.__new__(Order)
    for name in Order.__slots__:
        setattr(after, name, getattr(order, name))
    after.argv = [b"/bin/sh", b"-c", order.after_job]
    after.env = {
        **order.env,
        b"FORGE_EXIT_CODE": b"" if code is None else b"%d" % code,
        b"FORGE_SIGNAL": receipt.get("signal", "").encode(),
        b"FORGE_ENDING": job.ending.encode(),
    }
    after.stdin = None
    after.pty = False
    after.idle = None
    after.wall = OWNER_LIMIT if owner_gone else LIMIT
    after.grace = min(order.grace, GRACE)
    after.after_job = None
    after.cgroup = None
    return after


def receipt_with(result: dict[str, Any], command: dict[str, Any]) -> dict[str, Any]:
    """The receipt of the job, completed by that of the command that followed it."""
    told: dict[str, Any] = {
        name: command[name]
        for name in ("exit_code", "signal", "error")
        if name in command
    }
    if command["ending"] == "wall":
        told["timed_out"] = True
    sizes = {name: command[name] for name in ("stdout_bytes", "stderr_bytes")}
    receipt = {**result, **sizes, "after_job": told}
    if "remaining" in command:
        receipt["remaining"] = result.get("remaining", []) + command["remaining"]
    return receipt
