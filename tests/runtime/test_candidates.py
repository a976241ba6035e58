"""Candidates in a whole runtime: admitted with locks that live as long as they do."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
import trio
import trio.testing

from forge_actors.domain.admissions import AdmissionWanted, Admitted, NotAdmitted
from forge_actors.domain.requests import CandidateRequest, JobRequest
from forge_actors.runtime import parts
from forge_actors.runtime.candidates import AdmissionDesk
from forge_actors.testing.admissions import FakeAdmissions
from tests.actors.kit import order_of
from tests.edges.test_node_descriptors import descriptors, is_free, locked
from tests.runtime.control_kit import Case, controlled

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt
    from forge_actors.edges.node.descriptors import OpenDescriptors

WORK = "epic:1"


class Locking:
    """Admits everybody, with two locks."""

    def __init__(self, home: Path, argv: tuple[str, ...] = ("sleep", "600")) -> None:
        self.home = home
        self.argv = argv
        self.orders: list[LaunchOrder] = []
        self.given: list[OpenDescriptors] = []
        self.began: list[ProcessIdentity] = []
        self.ended: list[Receipt] = []

    async def admit(self, order: LaunchOrder) -> Admitted:
        self.orders.append(order)
        self.given.append(locked(self.home, "a", "b"))
        return Admitted(
            self.argv,
            {"GIVEN": "yes"},
            self.given[-1],
            self.began.append,
            self.ended.append,
        )


@asynccontextmanager
async def serving(
    folder: Path, patch: pytest.MonkeyPatch
) -> AsyncGenerator[tuple[Case, AdmissionDesk], None]:
    desk = AdmissionDesk()
    patch.setattr(parts, "AdmissionDesk", lambda: desk)
    async with controlled(folder) as case:
        yield case, desk


async def submit(case: Case, **options: Any) -> str:
    wanted = AdmissionWanted(WORK, 7)
    request = CandidateRequest(
        "app",
        ["/no/such/program"],
        kind="agent-run",
        stop_signal="SIGINT",
        timeout=1.0,
        idle_timeout=1.0,
        work=WORK,
        admission=wanted,
        **options,
    )
    [entry] = await case.control._admission.submit([request])
    return entry.id


async def begun(case: Case, job: str) -> None:
    async for event in case.runtime.events(after=0):
        if (event.kind, event.job) == ("job_running", job):
            return


async def test_its_locks_live_as_long_as_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (case, desk):
        locking = Locking(tmp_path)
        with desk.serving(WORK, locking):
            job = await submit(case)
            await begun(case, job)
            [order] = locking.orders
            assert order.admission == AdmissionWanted(WORK, 7)
            assert order.env["FORGE_JOB_ID"] == job
            [process] = locking.began
            found = descriptors(process.pid)
            assert {number: found[number] for number in (3, 4)} == {3: "a", 4: "b"}
            environ = await trio.Path(f"/proc/{process.pid}/environ").read_bytes()
            variables = environ.split(b"\0")
            assert b"GIVEN=yes" in variables
            assert f"FORGE_JOB_ID={job}".encode() in variables
            assert not is_free(tmp_path, "a")
            assert locking.given[0].numbers == (), "ours are closed"
            [view] = await case.end(job)
            assert (view.state, view.work) == ("cancelled", WORK)
            assert view.budgets == {}
            assert is_free(tmp_path, "a", "b")
            [receipt] = locking.ended
            assert (receipt.ending, receipt.signal) == ("cancel", "SIGINT")
            # A retry is asked about like any other.
            [made] = await case.control.retry([job])
            await begun(case, made.id)
            assert [each.job for each in locking.orders] == [job, made.id]
            await case.end(made.id)


async def test_one_whose_work_is_over_is_cancelled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(tmp_path, monkeypatch) as (case, _):
        job = await submit(case)
        [view] = await case.control.wait([job])
        assert view.state == "cancelled"
        assert view.error is not None
        assert view.error.code == "NOT_ADMITTED"
        assert view.error.message == f"{WORK}, which it is of, does not run any more"


async def test_one_that_comes_before_who_admits_it_waits_for_that() -> None:
    desk, admissions = AdmissionDesk(), FakeAdmissions()
    async with trio.open_nursery() as nursery:
        found = asked(nursery, desk)
        await trio.testing.wait_all_tasks_blocked()
        with desk.serving(WORK, admissions):
            desk.complete()
            await trio.testing.wait_all_tasks_blocked()
    assert isinstance(found[0], Admitted)
    assert len(admissions.given) == 1


async def test_who_admits_no_more_has_not_admitted_what_is_asked_about() -> None:
    desk, admissions = AdmissionDesk(), FakeAdmissions()
    desk.complete()
    admissions.held = trio.Event()
    async with trio.open_nursery() as nursery:
        with desk.serving(WORK, admissions):
            found = asked(nursery, desk)
            await trio.testing.wait_all_tasks_blocked()
            assert found == []
    assert found == [NotAdmitted(f"{WORK}, which it is of, does not run any more")]
    assert admissions.given == []


def asked(nursery: trio.Nursery, desk: AdmissionDesk) -> list[Admitted | NotAdmitted]:
    wanted = AdmissionWanted(WORK, 7)
    order = msgspec.structs.replace(order_of("job"), admission=wanted)
    found: list[Admitted | NotAdmitted] = []

    async def ask() -> None:
        found.append(await desk.admit(order))

    nursery.start_soon(ask)
    return found


def test_no_request_from_outside_can_be_one() -> None:
    told = {"repo": "app", "argv": ["true"], "admission": {"work": WORK, "issue": 1}}
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert(told, JobRequest)
