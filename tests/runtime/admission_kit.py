"""What the tests of admission share."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import apsw
import trio
import trio.testing

from forge_actors.domain.changes import JobEnded
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Job
from forge_actors.domain.repositories import Checkout, Identity
from forge_actors.domain.requests import JobRequest
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.secrets import SecretFolder
from forge_actors.runtime.settings import settings_from
from forge_actors.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.domain.relocation import Relocation


#: What there is of secrets.
SECRETS = ("KEY", "TOKEN")
WRITE = (Claim("write", "repo-content", "*"),)


class FolderGit:
    """Every folder with a `.git` inside is a repository; no program is run."""

    def __init__(self) -> None:
        self.delay = 0.0

    async def checkout(self, path: str) -> Checkout:
        await trio.sleep(self.delay)
        root = os.path.realpath(path)
        common = os.path.join(root, ".git")
        if not os.path.isdir(common):
            raise InvalidInput("path", f"{path} is no git work tree")
        status = os.stat(common)
        return Checkout(root, common, status.st_dev, status.st_ino, main=True)

    def identity(self, common_dir: str) -> Identity | None:
        return GitProgram().identity(common_dir)

    def add_id(self, common_dir: str, repo_id: str) -> None:
        GitProgram().add_id(common_dir, repo_id)

    def seek(self, common_dir: str, repo_id: str) -> list[tuple[str, Identity]]:
        return GitProgram().seek(common_dir, repo_id)

    def relink(self, common_dir: str, old: str, moved: Relocation) -> None:
        GitProgram().relink(common_dir, old, moved)


class Case:
    def __init__(self, store: SqliteStore, folder: Path, **tables: Any) -> None:
        self.store = store
        self.folder = folder
        self.git = FolderGit()
        self.clock = FakeClock()
        ids = IdSource()
        self.registry = Registry(store, self.git, self.clock, ids)
        self.secrets = SecretFolder(folder)
        self.told: list[tuple[str, tuple[Job, ...]]] = []
        self.admission = Admission(
            store,
            self.registry,
            self.clock,
            ids,
            lambda: settings_from(tables),
            self.secrets,
            lambda repo, jobs: self.told.append((repo, jobs)),
        )

    async def add(self, name: str) -> Path:
        folder = self.folder / name
        (folder / ".git").mkdir(parents=True)
        await self.registry.add(str(folder), name)
        return folder

    async def submit(self, *argv: str, **options: Any) -> Job:
        """Submit one job to `app` and give it back as it was saved."""
        request = JobRequest("app", list(argv) or ["true"], **options)
        [accepted] = await self.admission.submit([request])
        return self.jobs()[accepted.id]

    def jobs(self) -> dict[str, Job]:
        repos = [repo.id for repo in self.registry.all()]
        return {job.id: job for repo in repos for job in self.store.load_jobs(repo)}


@asynccontextmanager
async def admission(folder: Path, **tables: Any) -> AsyncGenerator[Case, None]:
    async with open_store(
        folder / "store.sqlite", repository_workers=4, overtake_after=1800.0
    ) as store:
        case = Case(store, folder, **tables)
        (folder / "secrets").mkdir()
        for name in SECRETS:
            (folder / "secrets" / name).write_bytes(b"a-value-of-it")
        await case.add("app")
        yield case


DEFAULTS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {"claims": WRITE, "replay": "never", "tokens": ("workers",)}),
    ({"read_only": True}, {"claims": (), "replay": "safe"}),
    (
        {"kind": "check"},
        {"replay": "safe", "tokens": ("workers", "heavy_checks")},
    ),
    (
        {"kind": "agent-run", "provider": "claude"},
        {"claims": WRITE, "tokens": ("workers", "agents", "provider:claude")},
    ),
    (
        {"kind": "check", "provider": "codex"},
        {"tokens": ("workers", "heavy_checks", "agents", "provider:codex")},
    ),
    ({"priority": "P0"}, {"priority": 0}),
    ({"max_attempts": 5}, {"max_attempts": 5, "exit_attempts": 5}),
    ({"replay": "always"}, {"replay": "always", "exit_attempts": 1}),
    ({"queue_timeout": "5m"}, {"queue_budget": 300.0}),
    ({"admission_timeout": 60}, {"admission_budget": 60.0}),
]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"kind": "party"}, "kind"),
    ({"priority": "P9"}, "priority"),
    ({"provider": "nobody"}, "provider"),
    ({"replay": "often"}, "replay"),
    ({"claims": ["read:nothing"]}, "claims"),
    ({"claims": ["grab:workspace"]}, "claims"),
    ({"after": ["nowhere"]}, "after"),
    ({"max_attempts": 0}, "max_attempts"),
    ({"max_attempts": 101}, "max_attempts"),
    ({"timeout": "soon"}, "timeout"),
    ({"timeout": 0.5}, "timeout"),
    ({"queue_timeout": "31d"}, "queue_timeout"),
    ({"idle_timeout": -1}, "idle_timeout"),
    ({"admission_timeout": "nan"}, "admission_timeout"),
    ({"grace": "2h"}, "grace"),
    ({"stop_signal": "SIGNOTHING"}, "stop_signal"),
    ({"cwd": "no/such/folder"}, "cwd"),
    ({"stdin": "relative"}, "stdin"),
    ({"stdin": "/no/such/file"}, "stdin"),
    ({"env": {"A=B": "1"}}, "env"),
    ({"env": {"": "1"}}, "env"),
    ({"env": {"A": "\0"}}, "env"),
    ({"env": {"FORGE_JOB_ID": "x"}}, "env"),
    ({"secrets": ["NOPE"]}, "secrets"),
    ({"secrets": ["TOKEN", "FORGE_JOB_ID"]}, "secrets"),
    ({"secrets": ["../store.sqlite"]}, "secrets"),
    ({"secrets": ["TOKEN"], "env": {"TOKEN": "x"}}, "secrets"),
    ({"secrets": [f"S{n}" for n in range(33)]}, "secrets"),
    ({"labels": [""]}, "labels"),
    ({"labels": ["x"] * 33}, "labels"),
    ({"name": "x" * 201}, "name"),
    ({"request_id": ""}, "request_id"),
    ({"unique": "x" * 201}, "unique"),
    ({"pty": True, "stdin": "/etc/passwd"}, "pty"),
    ({"nice": 20}, "nice"),
    ({"nice": -1}, "nice"),
    ({"memory": "2 apples"}, "memory"),
    ({"memory": "512K"}, "memory"),
    ({"pids": 0}, "pids"),
    ({"after_job": " "}, "after_job"),
    ({"after_job": "a\0b"}, "after_job"),
]


OTHERS: list[dict[str, Any]] = [
    {"repo": "other"},
    {"argv": ["false"]},
    {"kind": "check"},
    {"priority": "P1"},
    {"claims": ["read:path:x"]},
    {"provider": "claude"},
    {"replay": "safe"},
    {"max_attempts": 3},
    {"timeout": "2m"},
    {"idle_timeout": "2m"},
    {"queue_timeout": "2m"},
    {"grace": 1},
    {"env": {"A": "b"}},
    {"secrets": ["TOKEN"]},
    {"stop_signal": "INT"},
    {"cwd": "sub"},
    {"name": "n"},
    {"labels": ["l"]},
    {"unique": "k"},
    {"keep_leftovers": True},
    {"pty": True},
    {"nice": 1},
    {"memory": "2G"},
    {"after_job": "true"},
]


def ended(job: Job) -> JobEnded:
    event = Event("job_cancelled", 2.0, job.repo, job.id)
    return JobEnded(job.id, 0, None, "cancelled", None, 2.0, None, event)


def store_is_full() -> apsw.FullError:
    return apsw.FullError("database or disk is full")
