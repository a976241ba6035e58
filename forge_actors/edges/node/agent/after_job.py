"""The command of `--after-job`: a step that follows a job, with its log and folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job
    from forge_actors.edges.node.agent.order import Order

#: Seconds the command may take before it is killed, and when the service is gone.
LIMIT, OWNER_LIMIT = 60.0, 3.0


def fill(order: Order, job: Job, receipt: dict[str, Any], *, owner_gone: bool) -> None:
    """Make `order` that of the command, with the news of the job's end."""
    command = job.order.after_job
    assert command is not None
    code = receipt.get("exit_code")
    order.argv = [b"/bin/sh", b"-c", command]
    order.env = {
        **job.order.env,
        b"FORGE_EXIT_CODE": b"" if code is None else b"%d" % code,
        b"FORGE_SIGNAL": receipt.get("signal", "").encode(),
        b"FORGE_ENDING": job.ending.encode(),
    }
    order.wall = OWNER_LIMIT if owner_gone else LIMIT


def outcome(receipt: dict[str, Any]) -> dict[str, Any]:
    """What became of it, of the receipt of the command: see `domain.launch`."""
    told: dict[str, Any] = {
        name: receipt[name]
        for name in ("exit_code", "signal", "error")
        if name in receipt
    }
    if receipt["ending"] == "wall":
        told["timed_out"] = True
    return told
