"""One request for each noun of the HTTP interface; a test sends them as they stand.

They are sent in this order to a service that knows a repository `app`, which brings a
template `test` along. What is shown of an answer has its shape, not its values.
"""

from __future__ import annotations

from typing import NamedTuple

SOCKET = "~/.local/state/forge-actors/control.sock"


class Example(NamedTuple):
    """What is typed behind the name of the socket, and what is answered."""

    says: str
    words: str
    answer: str

    @property
    def command(self) -> str:
        return f"curl -s --unix-socket {SOCKET} \\\n    {self.words}"


EXAMPLES = {
    "jobs": Example(
        "Submit a job. Repeated with the same key it is accepted once",
        "http://localhost/v1/jobs -H 'Idempotency-Key: build-4711' \\\n"
        """    --json '{"jobs": [{"repo": "app", "argv": ["make", "test"]}]}'""",
        '{"jobs": [{"id": "1m8mqy3d67xk7kh06a4", "existing": false}]}',
    ),
    "events": Example(
        "The first two events, a line each; with `-N` and `follow=1` what comes",
        "'http://localhost/v1/events?after=0&limit=2'",
        '{"seq": 1, "at": "2026-11-30T21:24:07.104Z", "kind": "runtime_started",'
        ' "data": {}}',
    ),
    "inbox": Example(
        "What needs a person",
        "http://localhost/v1/inbox",
        '{"items": [], "more": 0, "dismissed": 0}',
    ),
    "repositories": Example(
        "Where the repositories are, and how",
        "'http://localhost/v1/repositories?limit=1'",
        '{"repositories": [{"name": "app", "path": "/home/me/src/app",'
        ' "enabled": true, "waiting": 0, "running": 0}], "next": null}',
    ),
    "schedules": Example(
        "Add a schedule",
        "http://localhost/v1/schedules \\\n"
        """    --json '{"name": "nightly", "repo": "app", "cron": "0 3 * * *","""
        """ "job": {"argv": ["make", "test"]}}'""",
        '{"name": "nightly", "state": "active", "next": "2026-12-01T03:00:00+00:00"}',
    ),
    "templates": Example(
        "Queue the job that a template makes",
        "http://localhost/v1/templates/test/submit \\\n"
        """    --json '{"repo": "app", "values": {"part": "fast"}}'""",
        '{"id": "1m8q5g0er06f2svkskt", "existing": false}',
    ),
    "workflows": Example(
        "Begin a workflow",
        "http://localhost/v1/workflows \\\n"
        """    --json '{"workflow": {"name": "release", "repo": "app", "steps": ["""
        """{"name": "test", "job": {"argv": ["make", "test"]}},"""
        """ {"name": "ask", "gate": "Publish it?", "after": ["test"]}]}}'""",
        '{"id": "1m8q5g0fj2q0g54drcv", "name": "release", "state": "running",'
        ' "counts": {"waiting": 2}}',
    ),
    "controllers": Example(
        "The agents that go on turn by turn",
        "'http://localhost/v1/controllers?limit=5'",
        '{"controllers": [], "next": null}',
    ),
    "worktrees": Example(
        "The worktrees that jobs left",
        "'http://localhost/v1/worktrees?quick=1'",
        '{"worktrees": [], "next": null}',
    ),
    "epics": Example(
        "The runs of EPICs that have not ended",
        "'http://localhost/v1/epics?active=1'",
        '{"epics": [], "next": null}',
    ),
    "policy": Example(
        "Start nothing for two hours",
        "http://localhost/v1/policy \\\n"
        """    --json '{"mode": "maintenance", "for": "2h", "reason": "new disk"}'""",
        '{"mode": "maintenance", "reason": "new disk", "revision": 1}',
    ),
    "usage": Example(
        "What agents used this week, by provider",
        "'http://localhost/v1/usage?by=provider&since=7d'",
        '{"by": "provider", "groups": [], "total": {"attempts": 0}}',
    ),
    "quarantine": Example(
        "What is kept for jobs whose processes are not proven gone",
        "http://localhost/v1/quarantine",
        '{"quarantined": []}',
    ),
    "webhooks": Example(
        "How far each webhook is",
        "http://localhost/v1/webhooks",
        '{"webhooks": []}',
    ),
    "service": Example(
        "Whether it is ready; `wait=ready` answers no sooner",
        "http://localhost/v1/status",
        '{"ready": true, "stage": "ready", "service": {"pid": 24690},'
        ' "readiness": {"database": "pass", "scheduler": "pass"}}',
    ),
    "logins": Example(
        "A link that lets one browser in, for a minute",
        "http://localhost/v1/login-links --json '{}'",
        '{"url": "http://127.0.0.1:33965/login?ticket=GLJ7", "expires_in": 60}',
    ),
}
