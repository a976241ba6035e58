"""What must be so after a chaos run; each check says what is not."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from benchmarks.chaos.story import INTERRUPTIONS
from forge_actors.domain.claims import first_conflict
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.chaos.evidence import Evidence
    from benchmarks.chaos.plans import Plan
    from benchmarks.chaos.story import Attempt, Story
    from benchmarks.chaos.told import Run

#: Seconds from a job's last line until its receipt is written, on a busy machine.
SLACK = 1.0


def violations(evidence: Evidence, story: Story) -> list[str]:
    """Everything that is wrong, each in a sentence."""
    return [
        *evidence.wrong,
        *story.wrong,
        *lost(evidence),
        *ends(evidence, story),
        *runs(evidence, story),
        *outcomes(evidence, story),
        *too_many(evidence, story),
        *overlaps(evidence, story),
        *too_early(evidence),
    ]


def lost(evidence: Evidence) -> Iterator[str]:
    """Every answered job is there, and no other."""
    for name, job in evidence.ids.items():
        if job not in evidence.views:
            yield f"{name} was accepted as {job}, which is lost"
    more = len(evidence.views) - len(set(evidence.ids.values()))
    if more and len(evidence.ids) == len(evidence.plans):
        yield f"{more} jobs are there that no submission was answered with"


def ends(evidence: Evidence, story: Story) -> Iterator[str]:
    """Every job ended once, and stays as it ended."""
    for job, view in evidence.views.items():
        told = story.jobs[job].ends if job in story.jobs else []
        if view["state"] not in TERMINAL:
            waiting = view["waiting"] or {}
            yield f"{job} has not ended: {view['state']}, {waiting.get('detail')}"
        if len(told) != (view["state"] in TERMINAL):
            yield f"{job} is {view['state']} and has the ends {told}"
        elif told and told[0] != view["state"]:
            yield f"{job} ended as {told[0]} and is {view['state']}"


def runs(evidence: Evidence, story: Story) -> Iterator[str]:
    """How often each job began, by its own account."""
    for name, found in evidence.runs.items():
        plan, job = evidence.plans[name], evidence.ids.get(name)
        for run in found:
            if job is not None and run.job != job:
                yield f"{name} is {job}, and ran as {run.job}"
        if plan.replay == "never" and len(found) > 1:
            yield f"{name} may not be repeated, and began {len(found)} times"
        if len(found) > plan.attempts:
            yield f"{name} began {len(found)} times, more than {plan.attempts}"
        for first, second in pairwise(found):
            if second.attempt <= first.attempt or second.fence <= first.fence:
                yield (
                    f"{name}: attempt {second.attempt}, fence {second.fence} began"
                    f" after attempt {first.attempt}, fence {first.fence}"
                )
            over = first.ended is not None and _final(plan, first)
            if over and not _hit(evidence, story, first):
                yield f"{name} had ended with {first.code}, and began again"
        fences = {one.number: one.fence for one in story.attempts(job)}
        for run in found:
            if fences.get(run.attempt) != run.fence:
                yield f"{name}: attempt {run.attempt} ran without its dispatch"
            cut = run.ended is None and plan.timeout is None
            if cut and not _hit(evidence, story, run):
                yield f"{name}, attempt {run.attempt} was cut off, and no kill hit it"
    for repo in evidence.place.repositories:
        yield from _fences(evidence, repo)


def _fences(evidence: Evidence, repo: str) -> Iterator[str]:
    """No two attempts of a repository have the same fence."""
    holders: dict[int, str] = {}
    for name, found in evidence.runs.items():
        if evidence.plans[name].repo != repo:
            continue
        for run in found:
            other = holders.setdefault(run.fence, f"{name}, attempt {run.attempt}")
            if other != f"{name}, attempt {run.attempt}":
                yield f"{name}, attempt {run.attempt} has the fence of {other}"


def _final(plan: Plan, run: Run) -> bool:
    """Whether a job may not run again after this end."""
    return run.code == 0 or run.attempt >= plan.exit_attempts


def _hit(evidence: Evidence, story: Story, run: Run) -> bool:
    """Whether its agent or its own processes were killed before its end was safe."""
    end = math.inf if run.ended is None else run.ended + SLACK
    # It is there before it can say so: its first line comes after its dispatch.
    begin = run.began
    for attempt in story.attempts(run.job):
        if attempt.number == run.attempt:
            begin = attempt.dispatched
            end = min(end, math.inf if attempt.decided is None else attempt.decided)
    return any(
        begin <= after and before <= end
        for blow in evidence.blows
        for before, after in blow.spans
        if blow.target != "jobs" or run.pid in blow.victims
    )


def _decided(story: Story, run: Run) -> float:
    """When it was decided what becomes of it."""
    moments = (
        one.decided for one in story.attempts(run.job) if one.number == run.attempt
    )
    return next((one for one in moments if one is not None), math.inf)


def _hit_early(evidence: Evidence, attempt: Attempt) -> bool:
    """Whether an agent died that may have been starting this attempt."""
    decided = math.inf if attempt.decided is None else attempt.decided
    return any(
        attempt.dispatched - SLACK <= after and before <= decided
        for blow in evidence.blows
        for before, after in blow.spans
    )


def outcomes(evidence: Evidence, story: Story) -> Iterator[str]:
    """How each job ended is how it says that it ended."""
    for name, job in evidence.ids.items():
        if job not in evidence.views or job not in story.jobs:
            continue
        plan, told = evidence.plans[name], story.jobs[job]
        view, found = evidence.views[job], evidence.runs[name]
        state, code = view["state"], told.code
        number = told.attempts[-1].number if told.attempts else 0
        last = next((run for run in found if run.attempt == number), None)
        what = f"{name} ({job}) is {state}, {code}, attempt {number}"
        if state == "succeeded" or code == "EXIT_NONZERO":
            yield from _agrees(evidence, view, last, what)
        elif code == "DEPENDENCY_BLOCKED":
            others = (evidence.views[evidence.ids[one]]["state"] for one in plan.after)
            if found or all(other == "succeeded" for other in others):
                yield f"{what}, and its dependencies have succeeded, or it ran"
        elif state == "timed_out":
            if plan.timeout is None or last is None or last.ended is not None:
                yield f"{what}, without reason"
        elif code not in INTERRUPTIONS:
            yield f"{what}: {view['error']}"
        else:
            if last is not None and last.ended is not None:
                safe = not _hit(evidence, story, last)
            else:  # one that was cut off is looked at with the runs
                safe = last is None and not _hit_early(evidence, told.attempts[-1])
            if safe:
                yield f"{what}, and no kill hit it: {view['error']}"
            if state == "human_attention_required" and plan.replay != "never":
                yield f"{what}, and may be repeated ({plan.replay})"
            if state == "failed" and number < plan.attempts:
                yield f"{what} of {plan.attempts}"
            if state not in ("human_attention_required", "failed"):
                yield f"{what}: {view['error']}"


def _agrees(
    evidence: Evidence, view: dict[str, object], last: Run | None, what: str
) -> Iterator[str]:
    """The exit code and the output that were kept are those of the last attempt."""
    if last is None or last.ended is None:
        yield f"{what}, and never ended by its own account"
        return
    if (view["exit_code"], view["attempt"]) != (last.code, last.attempt):
        yield f"{what}, exit code {view['exit_code']}, and ended with {last.code}"
    if (last.code == 0) != (view["state"] == "succeeded"):
        yield f"{what}, and ended with {last.code}"
    line = evidence.last_lines.get(last.job)
    if line != last.last_line:
        yield f"{what}, and its output ends with {line!r}"


def _spans(evidence: Evidence, story: Story) -> Iterator[tuple[float, float, Plan]]:
    """When each run was certainly there, and held what it needs."""
    for name, found in evidence.runs.items():
        for run in found:
            end = run.ended
            if end is None:
                kills = [
                    before
                    for blow in evidence.blows
                    for before, after in blow.spans
                    if after > run.began
                ]
                end = min([*kills, _decided(story, run)])
                # Of one that nobody knows the end of only its begin is certain.
                end = run.began if end == math.inf else end
            yield run.began, max(run.began, end), evidence.plans[name]


def too_many(evidence: Evidence, story: Story) -> Iterator[str]:
    """At no moment did more run than a limit allows, by the jobs' own account."""
    for what, limit in evidence.limits.items():
        moments = []
        for began, end, plan in _spans(evidence, story):
            if what in plan.tokens:
                moments += [(began, 1), (end, -1)]
        at_once = most = 0
        for _, change in sorted(moments):
            at_once += change
            most = max(most, at_once)
        evidence.most[what] = most
        if most > limit:
            yield f"{most} ran at once that need {what}, of which there are {limit}"


def overlaps(evidence: Evidence, story: Story) -> Iterator[str]:
    """No two runs held claims that conflict, by the jobs' own account."""
    for name, found in evidence.runs.items():
        for run in found:
            for lock in run.overlaps:
                yield (
                    f"{name}, attempt {run.attempt} began while processes of another"
                    f" job still held {lock.rpartition('/')[2]}"
                )
    spans = sorted(_spans(evidence, story), key=lambda span: span[:2])
    for place, (_, end, plan) in enumerate(spans):
        checkout = str(evidence.place.repositories[plan.repo])
        for began, _, other in spans[place + 1 :]:
            if began >= end:
                break
            if other.repo != plan.repo or other is plan:
                continue
            clash = first_conflict(plan.held(checkout), other.held(checkout))
            if clash is not None:
                yield f"{other.name} began while {plan.name} held {clash}"


def too_early(evidence: Evidence) -> Iterator[str]:
    """No job began before what it runs after had succeeded."""
    for name, found in evidence.runs.items():
        for one in evidence.plans[name].after if found else ():
            ended = [run.ended for run in evidence.runs[one] if run.code == 0]
            if not ended or ended[-1] is None or ended[-1] > found[0].began:
                yield f"{name} began before {one} had succeeded"
