"""What each row has to reach, and which rows are compared with which."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bar:
    """A limit of a row's value, or of its ratio to the C reference.

    A `goal` beside it is what we would like to reach; it judges nothing.
    """

    limit: float
    at_least: bool = True
    of_c: bool = False
    goal: float | None = None

    def met(self, value: float | None, of_c: float | None) -> bool | None:
        """None if there is no number to judge."""
        number = of_c if self.of_c else value
        if number is None:
            return None
        return number >= self.limit if self.at_least else number <= self.limit

    def __str__(self) -> str:
        sign = ">=" if self.at_least else "<="
        goal = "" if self.goal is None else f", goal {self.goal:,g}"
        return f"{sign} {self.limit:,g}{' of C' if self.of_c else ''}{goal}"


@dataclass(frozen=True)
class Comparison:
    """One row divided by another of the same round."""

    name: str
    row: str
    other: str
    less_is_better: bool = False


def at_most(limit: float) -> Bar:
    return Bar(limit, at_least=False)


def lower(name: str, row: str, other: str) -> Comparison:
    """One of which less is better."""
    return Comparison(name, row, other, less_is_better=True)


COMPARISONS = (
    lower("schedule-add_of_first", "schedule-add", "schedule-add-first"),
    lower("workflow-step_of_small", "workflow-step", "workflow-step-small"),
    lower("worktrees_of_in-turn", "worktrees", "worktrees-in-turn"),
    Comparison("w1_of_skeleton", "w1", "skeleton"),
    Comparison("w1_of_huey", "w1", "w1-huey"),
    Comparison("w1_of_huey-forgets", "w1", "w1-huey-forgets"),
    Comparison("w1_of_spooler", "w1", "w1-spooler"),
    Comparison("w1-deep_of_w1", "w1-deep", "w1"),
    Comparison("tell_of_trio", "tell", "tell-trio"),
    Comparison("tell_of_pykka", "tell", "tell-pykka"),
    Comparison("ask_of_pykka", "ask", "ask-pykka"),
    lower("w2_of_spooler", "w2-median", "w2-spooler"),
    Comparison("w2-quiet_of_w2-looking", "w2-quiet", "w2-looking"),
    lower("start-help_of_python", "start-help", "start-python"),
    lower("start-status_of_python", "start-status", "start-python"),
    lower("start-submit_of_python", "start-submit", "start-python"),
    lower("start-jobs_of_python", "start-jobs", "start-python"),
)

#: Units are those of the rows: jobs/s, per s, ms, MiB, bytes, s; comparisons have none.
BARS = {
    # It must not grow with their number.
    "schedule-add_of_first": at_most(2.0),
    "workflow-step_of_small": at_most(1.5),
    "schedule-idle": at_most(10.0),
    "schedule-due": at_most(2.0),
    "worktrees_of_in-turn": at_most(1.0),
    "w1": Bar(0.55, of_c=True, goal=0.65),
    "w1_of_skeleton": Bar(0.85),
    "w1_of_huey": Bar(1.0),
    # It keeps nothing, and no limits but one.
    "w1_of_spooler": Bar(0.85, goal=1.0),
    "w1-deep_of_w1": Bar(0.9),
    "tell_of_trio": Bar(0.9),
    "ask_of_pykka": Bar(3.0),
    "w2-median": at_most(3.0),
    "w2-p99": at_most(10.0),
    "looks": at_most(60.0),
    "looks-cpu": at_most(20.0),
    "w2-quiet_of_w2-looking": Bar(0.85),
    "epic-requests": at_most(3.0),
    "epic-evaluate": at_most(10.0),
    "accept-batch": Bar(30_000.0),
    "accept-callers": Bar(10_000.0),
    "list": at_most(5.0),
    "submit-http": at_most(2.0),
    "start-help_of_python": at_most(5.0),
    "start-status_of_python": at_most(5.0),
    "start-submit_of_python": at_most(5.0),
    "start-jobs_of_python": at_most(5.0),
    "memory-job": at_most(1024.0),
    "memory-repository": at_most(8 * 1024.0),
    "ready": at_most(1.0),
    "ready-mcp": at_most(2.0),
    "restart": at_most(2.0),
    "w4-service": at_most(0.0),
    "w4-all": at_most(0.0),
    "w4-all-decided": at_most(1.0),
    "limit-return": at_most(1.0),
    "agent-output": Bar(50.0),
    "agent-output-memory": at_most(16.0),
    "w1-clean": Bar(85.0),
    "status-spin": Bar(85.0),
    "w1-readers": Bar(85.0),
    "readers-memory": at_most(5.0),
    "idle-cpu": at_most(20.0),
    "idle-rss": at_most(80.0),
    "idle-rss-agents": at_most(130.0),
}
