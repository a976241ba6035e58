"""What runs of EPICs need a person for, as items of the inbox."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from forge_actors.domain.epic.runs import UnreadableEpic, attention, loaded
from forge_actors.domain.inbox import Item
from forge_actors.domain.redaction import bounded, redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from forge_actors.domain.epic.runs import EpicRun
    from forge_actors.domain.epic.views import ChildView

#: Characters of what is said of one.
MAX_SAID = 500


def epic_items(
    rows: Iterable[tuple[str, str | None, bytes]],
    moment: Callable[[float], str | None],
) -> list[Item]:
    """The items of runs that need somebody: the id, the name of the repository and what
    was saved of each."""
    found: list[Item] = []
    for key, repo, body in rows:
        try:
            run = loaded(body)
        except UnreadableEpic as error:
            found.append(_unreadable(key, repo, str(error)))
            continue
        if run.failed:
            found.append(_run(run, repo, moment))
        found += _issues(run, repo, moment)
    return found


def _run(run: EpicRun, repo: str | None, moment: Callable[[float], str | None]) -> Item:
    item = f"epic:{run.id}"
    why = run.why
    if run.last is not None and run.reason == "degraded":
        why = run.last.reason
    return Item(
        id=item,
        kind="epic",
        says=_said(f"the run of EPIC {run.request.epic} ended early: {why}"),
        since=None if run.ended is None else moment(run.ended),
        repo=repo,
        job=None,
        evidence={"run": run.id, "reason": run.reason or "it could not go on"},
        actions=[
            f"forge-actors epic status {run.id}",
            _again(run, repo),
            _dismiss(item),
        ],
    )


def _issues(
    run: EpicRun, repo: str | None, moment: Callable[[float], str | None]
) -> Iterator[Item]:
    """An item for each issue that waits for a person: another one for each claim."""
    for child in attention(run):
        item = f"epic:{run.id}:{child.number}.{child.generation or 0}"
        evidence = {"run": run.id, "issue": f"#{child.number}"}
        told = {"branch": child.branch, "phase": child.phase, "reason": child.reason}
        evidence |= {name: text for name, text in told.items() if text}
        actions = [f"forge-actors epic status {run.id}"]
        if child.job is not None:
            actions.append(f"forge-actors logs {child.job}")
        yield Item(
            id=item,
            kind="epic",
            says=_said(_about(run, child)),
            since=None if run.ended is None else moment(run.ended),
            repo=repo,
            job=child.job,
            evidence=evidence,
            actions=[*actions, _dismiss(item)],
        )


def _about(run: EpicRun, child: ChildView) -> str:
    of = "" if run.last is None else f" of {run.last.repository}"
    how = {"failed": "has failed: ", "blocked": "is blocked: "}
    why = child.detail or child.reason.removeprefix("held:")
    why = how.get(child.phase or "", "is ") + why
    return f"issue #{child.number}{of} {why} ({child.title})"


def _unreadable(key: str, repo: str | None, why: str) -> Item:
    item = f"epic:{key}"
    return Item(
        id=item,
        kind="epic",
        says=_said(f"run {key} of an EPIC does not go on: {why}"),
        since=None,
        repo=repo,
        job=None,
        evidence={"run": key},
        actions=[f"forge-actors jobs --work {key}", _dismiss(item)],
    )


def _again(run: EpicRun, repo: str | None) -> str:
    place, epic = shlex.quote(repo or run.repo), shlex.quote(run.request.epic)
    return f"forge-actors epic run --detach --repo {place} {epic}"


def _dismiss(item: str) -> str:
    return f"forge-actors inbox dismiss {item}"


def _said(text: str) -> str:
    return bounded(redact(text), MAX_SAID)
