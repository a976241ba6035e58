"""Admission: what a caller sent becomes jobs, all of them or none, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.domain.claims import Claim
from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.jobs import Budgets
from forge_actors.domain.launch import ProcessLimits
from forge_actors.domain.requests import Accepted, JobRequest

if TYPE_CHECKING:
    from pathlib import Path

from tests.runtime.admission_kit import DEFAULTS, OTHERS, WRONG, admission, ended

pytestmark = pytest.mark.mock_clock


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


async def test_what_limits_a_job_and_follows_it_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    async with admission(tmp_path) as case:
        plain = await case.submit()
        job = await case.submit(pty=True, nice=19, memory="1G", pids=64, after_job="é")
        spec = case.store.spec(job.id)
        assert spec.limits == ProcessLimits(nice=19, memory=1 << 30, pids=64)
        assert (spec.pty, spec.after_job) == (True, "é")
        spec = case.store.spec(plain.id)
        assert (spec.pty, spec.limits, spec.after_job) == (False, None, None)


async def test_a_number_of_processes_is_refused_where_it_would_not_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 0)
    async with admission(tmp_path) as case:
        with pytest.raises(InvalidInput, match="cannot be kept for root"):
            await case.submit(pids=64)


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


async def test_a_claimed_workspace_is_the_folder_however_it_is_named(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        root = tmp_path / "app"
        (tmp_path / "link").symlink_to(root)
        (tmp_path / "later").symlink_to(tmp_path / "new")
        for path, real in (
            (root, root),
            (tmp_path / "link", root),
            (".", root),
            ("../link", root),
            (tmp_path / "later" / "child", tmp_path / "new" / "child"),
        ):
            job = await case.submit(claims=[f"write:workspace:{path}"])
            assert job.claims == (Claim("write", "workspace", "", str(real)),)


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


async def test_a_secret_that_is_not_there_is_refused_with_those_that_are(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        with pytest.raises(InvalidInput) as caught:
            await case.submit(secrets=["TOKEN", "NOPE"])
        assert str(caught.value) == (
            "secrets: there is no secret 'NOPE' (allowed: KEY, TOKEN)"
        )
        job = await case.submit(secrets=["TOKEN", "KEY", "TOKEN"])
        assert case.store.spec(job.id).secrets == ("TOKEN", "KEY")
        for name in ("KEY", "TOKEN"):
            case.secrets.remove(name)
        with pytest.raises(InvalidInput, match="set it with: forge-actors secret set"):
            await case.submit(secrets=["NOPE"])


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
