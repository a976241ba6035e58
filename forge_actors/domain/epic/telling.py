"""What a run of an EPIC says: one line for one event.

All of it may go through the redactor and loses what would move a cursor; whatever comes
from GitHub or from a file is cut.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from forge_actors.domain.epic.verdicts import KINDS
from forge_actors.domain.epic.views import told
from forge_actors.domain.harmless import clean
from forge_actors.domain.redaction import redact
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from forge_actors.domain.epic.graph import EpicNode, RepositoryNode, SnapshotRefused
    from forge_actors.domain.epic.namespace import Classification
    from forge_actors.domain.epic.records import Claim, Invocation, SnapshotSummary
    from forge_actors.domain.epic.verdicts import Verdict

#: Status of a worker that was interrupted.
INTERRUPTED = 130
#: Characters of one line.
MAX_LINE = 2000
_WHY_HELD: dict[str, str] = {
    "owned": "somebody else works on it",
    "uncertain": "nothing is certain that could be gone on with now",
    "settled-namespace": "the work on it has come to its end",
    "resumable": "its worker ended in the middle; the next run goes on with it",
    "other-epic": "its folder belongs to another EPIC",
    "orphaned": "it is no child of this EPIC any more",
    "standalone-state": "a run of its own works on it",
    "spawn-failed": "its worker could not be started",
}


def line(text: str) -> str:
    """One line as it may be printed."""
    shown = clean(redact(text[: 4 * MAX_LINE])).strip()
    return shown if len(shown) <= MAX_LINE else f"{shown[: MAX_LINE - 1]}…"


def began(
    epic: EpicNode, repository: RepositoryNode, invocation: Invocation, limit: int
) -> str:
    closed = "" if epic.open else ", which is closed"
    return (
        f"EPIC #{epic.number} of {told(repository.place)}{closed}:"
        f" invocation {invocation.id}, at most {limit} at once"
    )


def refused(error: SnapshotRefused, now: float) -> str:
    later = f"; it may be over later: run it again{after(error.wait, now)}"
    return (
        f"the graph could not be read ({error.reason}): {error};"
        f" nothing more begins{later if error.transient else ''}"
    )


def after(wait: float | None, now: float) -> str:
    """When it makes sense to ask again; `now` in seconds since 1970."""
    if wait is None:
        return ""
    return f" after {timestamp(math.ceil(now + wait))} (in {wait:.0f} s)"


def summary(found: SnapshotSummary) -> str:
    seen = counted({kind: getattr(found, kind) for kind in KINDS})
    children = "1 child" if found.children == 1 else f"{found.children} children"
    return f"snapshot {found.digest[7:15]}: {children}{seen}"


def ended(epic: int, reason: str, counts: Mapping[str, int]) -> str:
    return f"EPIC #{epic}: {reason}{counted(counts)}"


def counted(counts: Mapping[str, int]) -> str:
    """How many issues are in which state, behind other words."""
    told = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    return f": {told}" if told else ""


def started(issue: int, claim: Claim, pid: int, log: str) -> str:
    return (
        f"#{issue}: {claim.kind}, generation {claim.generation}, pid {pid}, log {log}"
    )


def finalized(
    issue: int,
    status: int | None,
    found: Classification,
    became: str | None,
    why: str,
    log: str,
) -> str:
    """`why`: what its worker saved about how it has settled; `log`: where it may have
    said more."""
    ended = "unknown status" if status is None else f"status {status}"
    claim = "left open" if became is None else f"closed as {became}"
    kind = found.settlement or found.kind
    words = f": {why}" if why and found.settlement else ""
    asked_to = status in (0, INTERRUPTED)
    see = "" if found.settlement or asked_to else f"; its log may say why: {log}"
    return f"#{issue}: its worker ended ({ended}); {kind}{words}; claim {claim}{see}"


def held(verdict: Verdict, *, claim_open: bool, phase: str | None) -> str:
    """Why an issue is left for another run; its verdict is `held` or `owned`.
    `phase`: where the work on it has settled."""
    fact = verdict.reason.removeprefix("held:")
    end = f" ({phase})" if phase else ""
    kept = "; an earlier claim of it stays open" if claim_open else ""
    return f"#{verdict.number} is left ({fact}): {_WHY_HELD.get(fact, fact)}{end}{kept}"


def stale(issue: int, differences: Iterable[str]) -> str:
    return f"#{issue} has changed: {'; '.join(differences)}"


def left(ended: Collection[int], live: Collection[int]) -> str:
    parts = []
    if live:
        parts.append(f"workers go on with {names(live)}")
    if ended:
        parts.append(f"claims of {names(ended)} are not closed")
    return f"{' and '.join(parts)}; the next run finds out what became of them"


def names(issues: Iterable[int]) -> str:
    return ", ".join(f"#{issue}" for issue in sorted(issues))
