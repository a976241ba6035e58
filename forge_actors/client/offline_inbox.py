"""What the store of a home that nothing serves says of what needs a person."""

from __future__ import annotations

import os
from functools import partial
from typing import Any

from msgspec import to_builtins

from forge_actors.client import offline, offline_home
from forge_actors.domain.controller_items import waiting_items
from forge_actors.domain.epic_items import epic_items
from forge_actors.domain.inbox import MAX_ITEMS, Facts, Inbox, inbox
from forge_actors.domain.trust_items import differing_item
from forge_actors.domain.workflow_items import asking_item, needing_item

_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = ?"
_ATTENTION = """\
SELECT id FROM job WHERE state = 'human_attention_required' AND NOT EXISTS (
    SELECT 1 FROM job AS again WHERE again.retry_of = job.id)
ORDER BY id DESC"""
_ASKING = "SELECT id FROM job WHERE state = 'waiting_for_approval' ORDER BY id DESC"
_KEPT_FROM = """\
SELECT id FROM job WHERE refused_effects IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM job AS again WHERE again.retry_of = job.id)
ORDER BY id DESC LIMIT ?"""
_COLUMN = "SELECT 1 FROM pragma_table_info('job') WHERE name = 'refused_effects'"
_ASIDE = """\
SELECT coalesce(repository.name, repo), job, error, since
FROM poison LEFT JOIN repository ON repository.id = repo ORDER BY since, repo, job"""
_CLOSED = """\
SELECT provider, reason, since, retry_at, stated, job, detail
FROM account WHERE NOT open ORDER BY provider"""
_STUCK = """\
SELECT worktree.id, repository.name, branch, worktree.path, reason, made_at
FROM worktree JOIN repository ON repository.id = worktree.repo
WHERE worktree.state IN ('ready', 'removing') AND reason IS NOT NULL AND NOT kept
ORDER BY made_at, worktree.id"""
_CLOSED_HOOKS = """\
SELECT name, after, failing_since, detail FROM webhook WHERE closed IS NOT NULL
ORDER BY name"""
_DIFFERING = """\
SELECT repository.id, repository.name, differs
FROM trust JOIN repository ON repository.id = trust.repo
WHERE differs IS NOT NULL ORDER BY repository.name"""
_STEPS = """\
SELECT workflow.id, workflow.name, workflow_step.body
FROM workflow_step JOIN workflow
    ON workflow.id = substr(workflow_step.id, 1, instr(workflow_step.id, '/') - 1)
WHERE workflow_step.state = 'asking'
    AND workflow.state IN ('running', 'paused', 'cancelling')
ORDER BY workflow_step.id"""
_NEEDING = """\
SELECT id, name, body FROM workflow
WHERE state IN ('human_attention_required', 'quarantined') ORDER BY id DESC"""
_WAITING = """\
SELECT id, name, body FROM controller
WHERE state IN ('waiting_for_user', 'quarantined') ORDER BY name"""
_EPICS = """\
SELECT id, (SELECT name FROM repository
    WHERE repository.id = substr(target, 1, instr(target, ' ') - 1)), body
FROM epic_run
WHERE needs = 1 AND NOT EXISTS (
    SELECT 1 FROM epic_run AS later
    WHERE later.target = epic_run.target AND later.id > epic_run.id)
ORDER BY id DESC LIMIT 100"""
_LAST = (
    "SELECT first, json_array_length(events) FROM history ORDER BY first DESC LIMIT 1"
)
_DISMISSED = "SELECT item FROM inbox WHERE dismissed_at IS NOT NULL"


def items(home: str) -> dict[str, Any]:
    """What a `GET /v1/inbox` would say."""
    shown: dict[str, Any] = to_builtins(_inbox(home, MAX_ITEMS))
    return shown


def count(home: str) -> int:
    """How many items there are."""
    return _inbox(home, 0).count


def _inbox(home: str, limit: int) -> Inbox:
    dismissed = frozenset(row[0] for row in _rows(home, "inbox", _DISMISSED))
    return inbox(_facts(home), dismissed, partial(offline.job, home), limit)


def _rows(home: str, table: str, query: str) -> list[tuple[Any, ...]]:
    """Nothing, if an older release wrote the store."""
    return offline.rows(home, query) if offline.rows(home, _KNOWN, [table]) else []


def _hooks(home: str) -> list[dict[str, Any]]:
    closed = _rows(home, "webhook", _CLOSED_HOOKS)
    last = [first + size - 1 for first, size in offline.rows(home, _LAST)]
    return [
        {
            "name": name,
            "url": None,
            "since": offline.moment(since),
            "detail": detail,
            "behind": max(0, last[0] - after) if last else 0,
        }
        for name, after, since, detail in closed
    ]


def _kept_from(home: str) -> list[str]:
    if not offline.rows(home, _COLUMN):
        return []  # an older release wrote the store
    return [row[0] for row in offline.rows(home, _KEPT_FROM, [MAX_ITEMS])]


def _facts(home: str) -> Facts:
    place = os.path.abspath(home)
    return Facts(
        attention=[row[0] for row in offline.rows(home, _ATTENTION)],
        asking=[offline.job(home, row[0]) for row in offline.rows(home, _ASKING)],
        kept_from=_kept_from(home),
        quarantined=offline_home.quarantined(home),
        aside=[
            {
                "repo": repo,
                "job": job or None,
                "error": error,
                "since": offline.moment(since),
            }
            for repo, job, error, since in _rows(home, "poison", _ASIDE)
        ],
        closed={
            provider: {
                "reason": reason,
                "since": offline.moment(since),
                "until": offline.moment(retry_at),
                "stated": bool(stated),
                "job": job,
                "detail": offline.shown(home, detail),
            }
            for provider, reason, since, retry_at, stated, job, detail in _rows(
                home, "account", _CLOSED
            )
        },
        worktrees=[
            {
                "id": job,
                "repo": repo,
                "branch": branch,
                "path": os.path.join(place, path),
                "reason": offline.shown(home, reason),
                "made_at": offline.moment(made_at),
            }
            for job, repo, branch, path, reason, made_at in _rows(
                home, "worktree", _STUCK
            )
        ],
        hooks=_hooks(home),
        differing=[
            differing_item(repo, name, differs, offline.moment)
            for repo, name, differs in _rows(home, "trust", _DIFFERING)
        ],
        workflows=[
            *(
                asking_item(row, offline.moment)
                for row in _rows(home, "workflow_step", _STEPS)
            ),
            *(
                needing_item(row, offline.moment)
                for row in _rows(home, "workflow", _NEEDING)
            ),
        ],
        controllers=waiting_items(_rows(home, "controller", _WAITING), offline.moment),
        epics=epic_items(_rows(home, "epic_run", _EPICS), offline.moment),
        logs=lambda job, attempt: f"{place}/logs/{job}.{attempt}",
    )
