"""Admission: what a caller sent becomes jobs, all of them or none, once."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import apsw
import msgspec
import pytest
import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.changes import JobEnded
from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import InvalidInput, NotFound, Refused, StoreFailed
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import Budgets, Job
from forge_actors.domain.repositories import Checkout, Identity
from forge_actors.domain.requests import Accepted, JobRequest
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.store import SqliteStore, open_store
from forge_actors.runtime.admission import Admission
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.registry import Registry
from forge_actors.runtime.settings import settings_from
from forge_actors.testing.clock import FakeClock

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

pytestmark = pytest.mark.mock_clock

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


class Case:
    def __init__(self, store: SqliteStore, folder: Path, **tables: Any) -> None:
        self.store = store
        self.folder = folder
        self.git = FolderGit()
        self.clock = FakeClock()
        ids = IdSource()
        self.registry = Registry(store, self.git, self.clock, ids)
        self.told: list[tuple[str, tuple[Job, ...]]] = []
        self.admission = Admission(
            store,
            self.registry,
            self.clock,
            ids,
            settings_from(tables),
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
        await case.add("app")
        yield case


async def test_an_accepted_job_is_durable_and_then_told_of(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit("make", "-j2")
        assert case.store.read("job_state", job.id) == [("queued",)]
        assert [(repo, [j.id for j in jobs]) for repo, jobs in case.told] == [
            (job.repo, [job.id])
        ]
        spec = case.store.spec(job.id)
        assert spec.argv == ("make", "-j2")
        assert spec.cwd == str(tmp_path / "app")
        assert (job.priority, job.attempt, job.max_attempts) == (2, 0, 3)


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


@pytest.mark.parametrize(("options", "fields"), DEFAULTS)
async def test_what_is_not_said_has_a_default(
    options: dict[str, Any], fields: dict[str, Any], tmp_path: Path
) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit(**options)
        assert {name: getattr(job, name) for name in fields} == fields


async def test_a_check_reads_its_own_checkout(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        root = str(tmp_path / "app")
        assert (await case.submit(kind="check")).claims == (
            Claim("read", "workspace", "", root),
        )


@pytest.mark.parametrize(
    ("kind", "seconds"),
    [("check", 3600.0), ("agent-run", 43200.0), ("repository-command", None)],
)
async def test_each_kind_has_its_execution_budget(
    kind: str, seconds: float | None, tmp_path: Path
) -> None:
    async with admission(tmp_path) as case:
        job = await case.submit(kind=kind)
        assert case.store.spec(job.id).budgets == Budgets(execution=seconds)
        job = await case.submit(kind=kind, timeout="90s", idle_timeout=5)
        assert case.store.spec(job.id).budgets == Budgets(execution=90.0, idle=5.0)


async def test_claims_are_read_and_two_spellings_are_one(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        root = tmp_path / "app"
        (root / "src").mkdir()
        (root / "link").symlink_to("src")
        job = await case.submit(
            claims=["read:path:src/a:b", "write:path:./link/a:b", "read:git-ref:main"]
        )
        assert [str(claim) for claim in job.claims] == [
            "read:git-ref:main",
            "write:path:src/a:b",
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
    ({"labels": [""]}, "labels"),
    ({"labels": ["x"] * 33}, "labels"),
    ({"name": "x" * 201}, "name"),
    ({"request_id": ""}, "request_id"),
    ({"unique": "x" * 201}, "unique"),
]


@pytest.mark.parametrize(("options", "field"), WRONG)
async def test_what_is_wrong_is_named_and_nothing_is_accepted(
    options: dict[str, Any], field: str, tmp_path: Path
) -> None:
    async with admission(tmp_path) as case:
        with pytest.raises(InvalidInput) as caught:
            await case.submit(**options)
        assert caught.value.field == field
        good = JobRequest("app", ["true"])
        bad = JobRequest("app", ["true"], **options)
        with pytest.raises(InvalidInput) as caught:
            await case.admission.submit([good, bad])
        assert caught.value.field == f"jobs[1].{field}"
        assert case.jobs() == {}
        assert case.told == []


@pytest.mark.parametrize("argv", [[], [""], ["a\0b"], [{"b64": "%"}], [{"x": "y"}]])
async def test_a_command_that_cannot_be_is_refused(argv: Any, tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        with pytest.raises(InvalidInput, match="argv"):
            await case.admission.submit([JobRequest("app", argv)])


async def test_a_repository_that_is_not_known_is_named(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        with pytest.raises(NotFound, match=r"'apt'.*did you mean 'app'"):
            await case.admission.submit([JobRequest("apt", ["true"])])
        requests = [JobRequest("app", ["true"]), JobRequest(str(tmp_path), ["true"])]
        with pytest.raises(InvalidInput, match=r"jobs\[1\]\.repo: .*no git work tree"):
            await case.admission.submit(requests)
        (tmp_path / "other" / ".git").mkdir(parents=True)
        requests[1] = JobRequest(str(tmp_path / "other"), ["true"])
        with pytest.raises(NotFound, match=r"jobs\[1\]\.repo: .*not registered"):
            await case.admission.submit(requests)
        assert case.jobs() == {}


async def test_a_batch_keeps_its_order_and_its_names(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        lines = [("c", ["b"]), ("a", []), ("b", ["a"]), (None, ["c", "a"])]
        requests = [
            JobRequest("app", ["true"], name=name, after=after) for name, after in lines
        ]
        accepted = await case.admission.submit(requests)
        jobs = case.jobs()
        c, a, b, last = (jobs[entry.id] for entry in accepted)
        assert (a.after, b.after, c.after) == ((), (a.id,), (b.id,))
        assert last.after == (c.id, a.id)
        assert a.state == "queued"
        assert {b.state, c.state, last.state} == {"waiting_for_dependency"}
        with pytest.raises(InvalidInput, match="cycle: x -> y -> x"):
            await case.admission.submit(
                [
                    JobRequest("app", ["true"], name="x", after=["y"]),
                    JobRequest("app", ["true"], name="y", after=["x"]),
                ]
            )


async def test_a_job_may_run_after_one_that_was_there(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        first = await case.submit()
        second = await case.submit(after=[first.id[-8:], first.id])
        assert second.after == (first.id,)
        assert second.state == "waiting_for_dependency"


async def test_a_request_id_gives_the_same_job_again(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        request = JobRequest("app", ["true"], request_id="r")
        accepted = [(await case.admission.submit([request]))[0] for _ in range(3)]
        assert len({entry.id for entry in accepted}) == 1
        assert [entry.existing for entry in accepted] == [False, True, True]
        other = JobRequest("app", ["false"], request_id="r")
        with pytest.raises(Refused, match=r"r.*belongs to job"):
            await case.admission.submit([other])
        both = await case.admission.submit([JobRequest("app", ["true"]), request])
        assert [entry.existing for entry in both] == [False, True]
        assert len(case.jobs()) == 2


async def test_a_request_id_looks_at_the_job_and_not_at_its_spelling(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        folder = tmp_path / "app"
        (folder / "sub").mkdir()
        before = await case.submit("true")
        first = JobRequest(
            "app",
            ["true"],
            request_id="r",
            timeout="60s",
            grace=5,
            after=[before.id],
            claims=["read:path:sub"],
            cwd="sub",
        )
        changes: list[dict[str, Any]] = [
            {"repo": str(folder)},
            {"timeout": "1m"},
            {"timeout": 60},
            {"grace": "5s"},
            {"origin": "http"},
            {"after": [before.id[-8:]]},
            {"claims": ["read:path:./sub"]},
            {"cwd": str(folder / "sub" / ".")},
            {"stop_signal": "term"},
            {"priority": "P2", "max_attempts": None},
        ]
        [accepted] = await case.admission.submit([first])
        for change in changes:
            [again] = await case.admission.submit([structs.replace(first, **change)])
            assert again == Accepted(accepted.id, existing=True), change
        # How far the jobs before it are is no difference either.
        case.store.save([ended(before)])
        [again] = await case.admission.submit([first])
        assert again == Accepted(accepted.id, existing=True)


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
    {"stop_signal": "INT"},
    {"cwd": "sub"},
    {"name": "n"},
    {"labels": ["l"]},
    {"unique": "k"},
    {"keep_leftovers": True},
]


@pytest.mark.parametrize("change", OTHERS)
async def test_a_request_id_is_refused_for_another_job(
    change: dict[str, Any], tmp_path: Path
) -> None:
    async with admission(tmp_path) as case:
        await case.add("other")
        (tmp_path / "app" / "sub").mkdir()
        request = JobRequest("app", ["true"], request_id="r")
        await case.admission.submit([request])
        with pytest.raises(Refused, match="not the same"):
            await case.admission.submit([structs.replace(request, **change)])


async def test_the_history_says_where_a_job_came_from(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        first = await case.submit("true", origin="mcp")
        await case.submit("true", after=[first.id])
        rows = case.store.read("events_after", 0, 100)
        told = [(row[2], msgspec.json.decode(row[5])) for row in rows if row[4]]
        assert told == [
            ("job_queued", {"reason": "accepted", "origin": "mcp"}),
            ("job_waiting_for_dependency", {"reason": "accepted", "origin": "cli"}),
        ]


def ended(job: Job) -> JobEnded:
    event = Event("job_cancelled", 2.0, job.repo, job.id)
    return JobEnded(job.id, "cancelled", None, 2.0, None, event)


async def test_within_one_batch_a_request_id_and_a_unique_key_count_too(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        same = JobRequest("app", ["true"], request_id="r")
        keyed = JobRequest("app", ["true"], unique="k")
        a, b, c, d = await case.admission.submit([same, same, keyed, keyed])
        assert (a.id, c.id) == (b.id, d.id)
        assert a.id != c.id
        with pytest.raises(Refused, match="request_id"):
            await case.admission.submit(
                [
                    JobRequest("app", ["true"], request_id="new"),
                    JobRequest("app", ["false"], request_id="new"),
                ]
            )


async def test_a_unique_key_is_one_in_its_repository(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        await case.add("other")
        requests = [JobRequest(repo, ["true"], unique="k") for repo in ("app", "other")]
        first = await case.admission.submit(requests)
        again = await case.admission.submit(requests)
        assert [entry.id for entry in first] == [entry.id for entry in again]
        assert len({entry.id for entry in first}) == 2


async def test_what_is_not_durable_is_not_acknowledged_a_second_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two callers send one request while the disk is full: both are told."""
    async with admission(tmp_path) as case:
        request = JobRequest("app", ["true"], request_id="r")
        results: list[object] = []

        async def submit() -> None:
            try:
                results.append(await case.admission.submit([request]))
            except StoreFailed as error:
                results.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit)
            nursery.start_soon(submit)
            while not case.store._moves:
                await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            case.store._hold_back(store_is_full())
        assert all(isinstance(entry, StoreFailed) for entry in results)


def store_is_full() -> apsw.FullError:
    return apsw.FullError("database or disk is full")


async def test_more_jobs_than_may_wait_are_refused_whole(tmp_path: Path) -> None:
    async with admission(tmp_path, limits={"queued_jobs": 3}) as case:
        await case.submit()
        with pytest.raises(Refused, match="1 jobs wait or run and 3 more"):
            await case.admission.submit([JobRequest("app", ["true"])] * 3)
        assert len(case.jobs()) == 1
        await case.admission.submit([JobRequest("app", ["true"])] * 2)
        with pytest.raises(Refused):
            await case.submit()


async def test_a_repository_removed_meanwhile_accepts_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        other = await case.add("other")
        case.git.delay = 5.0
        requests = [JobRequest("app", ["true"]), JobRequest(str(other), ["true"])]

        async def submit() -> None:
            with pytest.raises(NotFound):
                await case.admission.submit(requests)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(submit)
            await trio.testing.wait_all_tasks_blocked()
            await case.registry.remove(case.registry.named("app"))
        assert case.store.read("active_total") == [(0,)]


async def test_nothing_is_a_batch_of_nothing(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        assert await case.admission.submit([]) == []


async def test_a_full_disk_is_the_answer(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        case.store._hold_back(store_is_full())
        with pytest.raises(StoreFailed, match="full"):
            await case.submit()
        assert case.told == []
        await trio.sleep(5)
        await case.submit()
        assert len(case.told) == 1
