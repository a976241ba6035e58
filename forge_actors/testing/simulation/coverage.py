"""What the runs of many seeds must reach: faults at every point, and moves of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.jobs import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from forge_actors.testing.simulation.faults import Fault, Kind, When

#: Rows that are committed.
ROWS = (
    "JobAdded",
    "JobWaits",
    "JobDispatched",
    "JobRan",
    "JobRequeued",
    "JobEnded",
    "JobDelegated",
    "JobHeld",
    "JobEdited",
    "JobAnswered",
    "JobApproved",
    "JobIsolated",
    "PauseBegan",
    "PauseEnded",
    "AccountChanged",
    "Quarantined",
    "QuarantineEnded",
    "WorktreeChanged",
    "LookSaved",
    "RepositoryChanged",
    "SettingsChanged",
    "Noted",
)
#: Messages to the agent, and from it.
ORDERS = ("hello", "start", "stop", "pause", "resume", "forget")
REPORTS = ("ready", "started", "exited")
#: What the agent writes down, and what it does on its own.
RECORDS = ("starting", "started", "receipt")
#: What is done for the worktree of a job.
STEPS = ("plan", "make", "enter", "undo")
DEEDS = ("start process", *(f"journal {what}" for what in RECORDS))

Place = tuple["Kind", str, "When"]
Pair = tuple[State, State]

_WHENS: tuple[When, ...] = ("before", "after")


def _faults() -> list[Place]:
    crashes: list[tuple[str, Kind]] = []
    crashes += [(f"commit {row}", "service") for row in ROWS]
    crashes += [(f"send {name}", "service") for name in ORDERS]
    crashes += [(f"take {name}", "service") for name in REPORTS]
    crashes += [(f"take {name}", "agent") for name in ORDERS]
    crashes += [(f"send {name}", "agent") for name in REPORTS]
    crashes += [(deed, "agent") for deed in DEEDS]
    # Of two that live in different processes either may die at what the other does.
    crashes += [(deed, "service") for deed in DEEDS]
    crashes += [(f"worktree {step}", "service") for step in STEPS]
    crashes.append(("sample", "service"))
    crashes += [(f"commit {row}", "agent") for row in ("JobDispatched", "JobEnded")]
    found: list[Place] = [
        (kind, point, when) for point, kind in crashes for when in _WHENS
    ]
    messages = [f"send {name}" for name in (*ORDERS, *REPORTS)]
    found += [("lose", point, "before") for point in messages]
    found += [("late", point, "before") for point in messages]
    # No agent says hello twice.
    again = [point for point in messages if point != "send ready"]
    found += [("repeat", point, "before") for point in again]
    found += [("slow", f"commit {row}", "before") for row in ROWS]
    found += [("fail", f"journal {what}", "before") for what in RECORDS]
    found += [("error", f"read {what}", "before") for what in ("jobs", "spec")]
    found += [("fail", f"commit {row}", "before") for row in ROWS]
    found += [("fail", f"worktree {step}", "before") for step in STEPS]
    found += [("slow", f"worktree {step}", "before") for step in STEPS]
    found += [("slow", "sample", "before"), ("fail", "sample", "before")]
    return found


#: Few runs pass these: they are drawn more often.
RARE = (
    "JobDelegated",
    "JobHeld",
    "JobEdited",
    *["JobAnswered"] * 3,
    *["JobApproved"] * 2,
    "JobIsolated",
    "WorktreeChanged",
    "enter",
    *["undo"] * 4,
    "PauseBegan",
    "PauseEnded",
    *["AccountChanged"] * 3,
    *["Quarantined"] * 3,
    *["QuarantineEnded"] * 4,
    "SettingsChanged",
    "stop",
    "pause",
    "resume",
)


#: Every fault at every point where it can happen. All must be reached.
FAULTS: tuple[Place, ...] = tuple(_faults())

#: What a ready job may wait for; `queued` is for a token, or for nothing.
READY: tuple[State, ...] = (
    "queued",
    "waiting_for_workspace",
    "waiting_for_heavy_check",
    "waiting_for_integration",
    "waiting_for_release_barrier",
)


def _pairs() -> tuple[Pair, ...]:
    """The moves that the runtime makes. The table of the domain has more: nothing
    becomes stale, and of a ready job none runs after another."""
    found: list[Pair] = [(one, other) for one in READY for other in READY]
    found = [(one, other) for one, other in found if one != other]
    ends: tuple[State, ...] = ("cancelled", "failed", "timed_out")
    found += [(state, end) for state in READY for end in ("dispatched", *ends)]
    # Accepted after what has failed already, it waits for nothing.
    found.append(("queued", "human_attention_required"))
    found += [("waiting_for_dependency", end) for end in ("queued", *ends)]
    found.append(("waiting_for_dependency", "human_attention_required"))
    found += [("waiting_for_retry", end) for end in ("queued", "cancelled", "failed")]
    found += [("running", "waiting_for_limit")]
    found += [("waiting_for_limit", then) for then in ("dispatched", "queued")]
    found += [("running", "waiting_for_approval"), ("waiting_for_approval", "queued")]
    decided: tuple[State, ...] = ("failed", "cancelled", "waiting_for_dependency")
    found += [("waiting_for_approval", then) for then in decided]
    # Its work is done, and is to be checked; and again, where that was interrupted.
    found.append(("running", "waiting_for_heavy_check"))
    found.append(("waiting_for_retry", "waiting_for_heavy_check"))
    # Of what runs as long as a time budget the start is told long before.
    found += [("dispatched", "running"), ("running", "timed_out")]
    for state in ("dispatched", "running"):
        found += [(state, again) for again in ("queued", "waiting_for_retry")]
        found += [(state, end) for end in ("succeeded", "cancelled", "failed")]
        found += [(state, "human_attention_required"), (state, "orphaned")]
    return tuple(found)


#: Every move of a job that counts. All must be reached.
PAIRS = _pairs()

#: Runs within which all of it must be reached.
REACHED_WITHIN = 2000


class Coverage:
    """What some runs have reached, and how often."""

    def __init__(self) -> None:
        self.faults: dict[Place, int] = dict.fromkeys(FAULTS, 0)
        self.pairs: dict[Pair, int] = dict.fromkeys(PAIRS, 0)

    def add(self, hits: Iterable[Fault], pairs: Iterable[Pair]) -> None:
        for fault in hits:
            place = (fault.kind, fault.point, fault.when)
            self.faults[place] = self.faults.get(place, 0) + 1
        for pair in pairs:
            self.pairs[pair] = self.pairs.get(pair, 0) + 1

    @property
    def missing(self) -> list[str]:
        """What was not reached."""
        faults = [" ".join(place) for place, count in self.faults.items() if not count]
        return faults + [" > ".join(p) for p, count in self.pairs.items() if not count]

    def summary(self) -> str:
        """How much was reached, and what was not."""
        counts = (self.faults, self.pairs)
        reached = [sum(count > 0 for count in table.values()) for table in counts]
        return "\n".join(
            (
                f"faults by point and moment: {reached[0]} of {len(self.faults)}",
                f"moves of jobs: {reached[1]} of {len(self.pairs)}",
                *(f"  not reached: {each}" for each in self.missing),
            )
        )
