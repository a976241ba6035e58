"""What follows a job once nothing of it is left, one step after the other.

First its artifacts are collected, then its `--after-job` command runs. The job's own
result stands before they begin; what becomes of them is only told beside it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import after_job
from forge_actors.edges.node.agent.order import Order

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job

#: Longest grace of a step, in seconds.
GRACE = 2.0
_NOT_BEGUN = {"error": "the node agent ended before it could begin"}
#: In the receipt that is written first, and found alone only if the agent dies.
_UNFINISHED = {"unfinished": True}


def order_for(
    step: str, job: Job, receipt: dict[str, Any], *, owner_gone: bool
) -> Order:
    """The order for a step of a job, which ended with this receipt."""
    order = Order.__new__(Order)
    vars(order).update(vars(job.order))
    order.step = step
    order.folder = None
    order.descriptors = []
    order.lasting = False
    order.steps = job.order.steps[job.order.steps.index(step) + 1 :]
    order.stdin = None
    order.pty = False
    order.idle = None
    order.grace = min(order.grace, GRACE)
    order.cgroup = None
    if step == "after_job":
        after_job.fill(order, job, receipt, owner_gone=owner_gone)
    else:
        # Few jobs have any: loaded when the first one does.
        from forge_actors.edges.node.agent import artifacts

        artifacts.fill(order, job.order, owner_gone=owner_gone)
    return order


def not_begun(receipt: dict[str, Any], steps: tuple[str, ...]) -> dict[str, Any]:
    """The receipt to be found if the agent dies before these steps."""
    return receipt | dict.fromkeys(steps, _NOT_BEGUN) if steps else receipt


def unfinished(receipt: dict[str, Any], order: Order) -> dict[str, Any]:
    """The receipt to be found if the agent dies with this step."""
    assert order.step is not None
    return not_begun(receipt, order.steps) | {order.step: _UNFINISHED}


def receipt_with(
    result: dict[str, Any], order: Order, ended: dict[str, Any]
) -> dict[str, Any]:
    """The receipt of the job, completed by that of a step that ended."""
    assert order.step is not None
    if order.step == "after_job":
        told = after_job.outcome(ended)
    else:
        from forge_actors.edges.node.agent import artifacts

        told = artifacts.outcome(ended)
    sizes = {name: ended[name] for name in ("stdout_bytes", "stderr_bytes")}
    receipt = {**result, **sizes, order.step: told}
    if "remaining" in ended:
        receipt["remaining"] = result.get("remaining", []) + ended["remaining"]
    return receipt
