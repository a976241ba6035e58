"""The receipt of a job, as the agent tells it: see `domain.launch.Receipt`."""

from __future__ import annotations

import os
import signal
from time import time
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import outputs, tree
from forge_actors.edges.node.agent.following import not_begun

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.jobs import Job

Message = dict[str, Any]


def identity_of(pid: int, start: int, boot_id: str, namespace: int) -> Message:
    """The fields of a `domain.launch.ProcessIdentity`."""
    return {
        "boot_id": boot_id,
        "pid": pid,
        "start_ticks": start,
        "namespace": namespace,
    }


def receipt_of(
    job: Job, boot_id: str, namespace: int, *, ended: bool = True
) -> Message:
    """What the job came to, fields at their default left out.

    Once it has `ended` nothing of it is left that could add to that.
    """
    stdout, stderr = job.streams
    receipt: Message = {
        "job": job.key[0],
        "attempt": job.key[1],
        "ending": job.ending,
        "ended_at": time(),
        "started_at": job.started_at,
        "identity": identity_of(job.pid, job.start, boot_id, namespace),
        "stdout_bytes": stdout.total,
        "stderr_bytes": stderr.total,
    }
    if job.status is not None:
        if os.WIFSIGNALED(job.status):
            receipt["signal"] = _signal_name(os.WTERMSIG(job.status))
        else:
            receipt["exit_code"] = os.WEXITSTATUS(job.status)
    if job.usage is not None:
        receipt["user_seconds"] = job.usage.ru_utime
        receipt["system_seconds"] = job.usage.ru_stime
        receipt["max_rss_kib"] = job.usage.ru_maxrss
    if job.forced:
        receipt["forced"] = True
    if job.paused_seconds:
        receipt["paused_seconds"] = round(job.paused_seconds, 3)
    tail = stderr.tail or stdout.tail
    if tail:
        receipt["stderr_tail"] = tail.decode(errors="replace")
    if job.leftovers:
        receipt["leftovers"] = [f"{p.pid} {p.name}" for p in job.leftovers]
    if job.output_held:
        receipt["output_held"] = True
    for name, stream in (("stdout_lost", stdout), ("stderr_lost", stderr)):
        if stream.error is not None:
            receipt[name] = stream.total - stream.kept
    if job.spared:
        receipt["remaining"] = [
            identity_of(pid, start, boot_id, namespace)
            for pid, start in job.spared
            if tree.lives(pid, start)
        ]
    if job.order.cgroup is not None and job.order.cgroup.out_of_memory():
        receipt["out_of_memory"] = True
    problems = job.problems + [s.error for s in job.streams if s.error]
    if problems:
        receipt["error"] = "; ".join(problems)
    if job.order.outputs is not None and job.previous is None:
        receipt["outputs"] = outputs.told(job.order, ended=ended)
    if job.order.worktree is not None and job.previous is None:
        job.order.worktree.add_to(receipt)
    return receipt


def unfinished_of(job: Job, boot_id: str, namespace: int) -> Message:
    """What the job came to, while something of it still runs.

    It is found alone only if the agent dies before that is gone.
    """
    job.drain()
    result = receipt_of(job, boot_id, namespace, ended=False) | {"unfinished": True}
    return not_begun(result, job.order.steps)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
