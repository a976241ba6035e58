"""What a launcher keeps whose jobs outlive it, as checks to run against one.

Call each of `CHECKS` with a function that opens the launcher of an owner, always on the
same node, and with one that makes orders for the commands of `launcher_contract`.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.ownership import Owner
from forge_actors.domain.ports import Launcher
from forge_actors.testing.launcher_contract import SLEEP

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from forge_actors.domain.launch import LaunchOrder
    from forge_actors.domain.ports import RunningAttempt
    from forge_actors.testing.launcher_contract import MakeOrder

    Open = Callable[[Owner], AbstractAsyncContextManager["DurableLauncher"]]
    Check = Callable[[Open, MakeOrder], Awaitable[None]]


class DurableLauncher(Launcher, Protocol):
    """What a runtime needs of a launcher, beside what its actors do."""

    async def reconcile(
        self,
        reserved: Mapping[tuple[str, int], ProcessIdentity | None],
        *,
        same_boot: bool,
    ) -> None:
        """Find out what became of these attempts, for `adopt`; end all others."""

    def end_all(self) -> None:
        """Let leaving end what runs."""


def owner(epoch: int) -> Owner:
    process = ProcessIdentity("boot", 1000 + epoch, epoch)
    return Owner(epoch, f"instance-{epoch}", process, f"release-{epoch}", 0.0)


def adopted(launcher: Launcher, order: LaunchOrder) -> RunningAttempt:
    found = launcher.adopt(order.job, order.attempt)
    assert found is not None
    return found


def keys(*orders: LaunchOrder) -> dict[tuple[str, int], None]:
    return dict.fromkeys((each.job, each.attempt) for each in orders)


async def check_a_new_runtime_adopts_every_attempt_once(
    open_: Open, order: MakeOrder
) -> None:
    orders = [order(*SLEEP, job=f"job-{number}") for number in range(3)]
    async with open_(owner(1)) as launcher:
        identities = [await launcher.launch(each).started() for each in orders]
    assert len(set(identities)) == len(orders)
    async with open_(owner(2)) as launcher:
        await launcher.reconcile(keys(*orders), same_boot=True)
        for each, identity in zip(orders, identities, strict=True):
            attempt = adopted(launcher, each)
            assert attempt.receipt is None
            assert await attempt.started() == identity
            # The same order again is the same process still.
            assert await launcher.launch(each).started() == identity
            attempt.stop()
            receipt = await attempt.exited()
            assert (receipt.ending, receipt.identity) == ("stop", identity)
            assert await adopted(launcher, each).exited() == receipt


async def check_one_that_ended_meanwhile_has_its_receipt(
    open_: Open, order: MakeOrder
) -> None:
    orders = [order("true", job="good"), order("false", job="bad")]
    async with open_(owner(1)) as launcher:
        for each in orders:
            launcher.launch(each)
    async with open_(owner(2)) as launcher:
        await launcher.reconcile(keys(*orders), same_boot=True)
        receipts = [await adopted(launcher, each).exited() for each in orders]
        assert [receipt.exit_code for receipt in receipts] == [0, 1]
        assert {receipt.instance for receipt in receipts} == {"instance-1"}
        assert {receipt.release for receipt in receipts} == {"release-1"}
        assert [receipt.fence for receipt in receipts] == [o.fence for o in orders]


async def check_what_was_forgotten_is_not_adopted(
    open_: Open, order: MakeOrder
) -> None:
    wanted = order("true")
    async with open_(owner(1)) as launcher:
        await launcher.launch(wanted).exited()
        launcher.forget(wanted.job, wanted.attempt)
    async with open_(owner(2)) as launcher:
        await launcher.reconcile(keys(wanted), same_boot=True)
        assert launcher.adopt(wanted.job, wanted.attempt) is None


async def check_what_was_adopted_can_be_forgotten(
    open_: Open, order: MakeOrder
) -> None:
    wanted = order("false")
    async with open_(owner(1)) as launcher:
        launcher.launch(wanted)
    for epoch, known in ((2, True), (3, False)):
        async with open_(owner(epoch)) as launcher:
            await launcher.reconcile(keys(wanted), same_boot=True)
            if known:
                await adopted(launcher, wanted).exited()
                launcher.forget(wanted.job, wanted.attempt)
            assert launcher.adopt(wanted.job, wanted.attempt) is None


async def check_leaving_lets_jobs_run_on(open_: Open, order: MakeOrder) -> None:
    wanted = order(*SLEEP)
    async with open_(owner(1)) as launcher:
        attempt = launcher.launch(wanted)
        identity = await attempt.started()
    assert attempt.receipt is None
    for epoch in (2, 3):
        async with open_(owner(epoch)) as launcher:
            await launcher.reconcile(keys(wanted), same_boot=True)
            attempt = adopted(launcher, wanted)
            assert await attempt.started() == identity
            assert attempt.receipt is None


async def check_end_all_ends_what_runs(open_: Open, order: MakeOrder) -> None:
    mine, found = order(*SLEEP, job="mine"), order(*SLEEP, job="found")
    async with open_(owner(1)) as launcher:
        await launcher.launch(found).started()
    async with open_(owner(2)) as launcher:
        await launcher.reconcile(keys(found), same_boot=True)
        attempts = [adopted(launcher, found), launcher.launch(mine)]
        for each in attempts:
            await each.started()
        launcher.end_all()
    assert [(await each.exited()).ending for each in attempts] == ["owner", "owner"]


async def check_an_earlier_owner_is_refused(open_: Open, order: MakeOrder) -> None:
    wanted = order(*SLEEP)
    async with open_(owner(5)) as launcher:
        await launcher.launch(wanted).started()
    try:
        async with open_(owner(4)):
            raise AssertionError("an earlier owner was served")
    except LauncherDown:
        pass
    async with open_(owner(5)) as launcher:
        await launcher.reconcile(keys(wanted), same_boot=True)
        assert adopted(launcher, wanted).receipt is None


async def check_what_nobody_mentions_never_began_on_this_boot(
    open_: Open, order: MakeOrder
) -> None:
    wanted = order("true")
    async with open_(owner(1)) as launcher:
        await launcher.reconcile(keys(wanted), same_boot=True)
        assert launcher.adopt(wanted.job, wanted.attempt) is None
    async with open_(owner(2)) as launcher:
        await launcher.reconcile(keys(wanted), same_boot=False)
        attempt = adopted(launcher, wanted)
        attempt.stop()
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.remaining) == ("lost", ())
        assert await attempt.started() is None


async def check_what_no_job_is_at_is_ended(open_: Open, order: MakeOrder) -> None:
    runs, ended = order(*SLEEP, job="runs"), order("true", job="ended")
    async with open_(owner(1)) as launcher:
        await launcher.launch(runs).started()
        await launcher.launch(ended).exited()
    async with open_(owner(2)) as launcher:
        unknown = adopted(launcher, runs)
        await launcher.reconcile({}, same_boot=True)
        assert launcher.adopt(ended.job, ended.attempt) is None
        assert (await unknown.exited()).ending == "stop"
        assert launcher.adopt(runs.job, runs.attempt) is None


CHECKS: tuple[Check, ...] = (
    check_a_new_runtime_adopts_every_attempt_once,
    check_one_that_ended_meanwhile_has_its_receipt,
    check_what_was_forgotten_is_not_adopted,
    check_what_was_adopted_can_be_forgotten,
    check_leaving_lets_jobs_run_on,
    check_end_all_ends_what_runs,
    check_an_earlier_owner_is_refused,
    check_what_nobody_mentions_never_began_on_this_boot,
    check_what_no_job_is_at_is_ended,
)
