"""What every launcher keeps, as checks to run against one.

Call each of `CHECKS` with a function that opens a fresh launcher and one that makes
orders. An implementation needs four commands: `true` exits with 0 and says nothing,
`false` with 1; `sleep N` runs until it is stopped; `/no/such/program` cannot start.
"""

from __future__ import annotations

import os
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Protocol

import trio
import trio.testing
from msgspec import structs

from forge_actors.domain.errors import LauncherDown
from forge_actors.domain.launch import AfterJob, ArtifactOrder, Secrets
from forge_actors.edges.node.descriptors import OpenDescriptors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.launch import LaunchOrder, Receipt
    from forge_actors.domain.ports import Launcher, RunningAttempt

    Open = Callable[[], AbstractAsyncContextManager[Launcher]]
    Check = Callable[[Open, "MakeOrder"], Awaitable[None]]

SLEEP = ("sleep", "4711.5")


def some_descriptors() -> OpenDescriptors:
    return OpenDescriptors([os.open(os.devnull, os.O_RDONLY) for _ in range(2)])


class MakeOrder(Protocol):
    def __call__(self, *argv: str, job: str = "job", attempt: int = 1) -> LaunchOrder:
        """A valid order for one of the commands; its job's id may be a longer one."""


async def check_one_attempt_is_one_process(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        first = launcher.launch(order(*SLEEP))
        identity = await first.started()
        second = launcher.launch(order(*SLEEP))
        assert identity is not None
        assert await second.started() == identity
        first.stop()
        assert await second.exited() == await first.exited()
        # Also once it has ended, until it is forgotten.
        third = launcher.launch(order(*SLEEP))
        assert await third.exited() == await first.exited()


async def check_the_next_attempt_is_another_process(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        receipts = []
        for number in (1, 2):
            attempt = launcher.launch(order("false", attempt=number))
            receipts.append(await attempt.exited())
        assert [receipt.attempt for receipt in receipts] == [1, 2]
        assert receipts[0].identity != receipts[1].identity


async def check_every_attempt_has_one_receipt(open_: Open, order: MakeOrder) -> None:
    argvs = [("true",), ("false",), SLEEP, ("/no/such/program",)]
    async with open_() as launcher:
        orders = [
            order(*argv, job=f"job-{number}") for number, argv in enumerate(argvs)
        ]
        attempts = [launcher.launch(wanted) for wanted in orders]
        attempts[2].stop()
        receipts = [await attempt.exited() for attempt in attempts]
        assert receipts == [await attempt.exited() for attempt in attempts]
        assert [each.ending for each in receipts] == ["exit", "exit", "stop", "spawn"]
        assert [each.exit_code for each in receipts] == [0, 1, None, None]
        assert [each.signal for each in receipts] == [None, None, "SIGTERM", None]
        for number, receipt in enumerate(receipts):
            assert receipt.job == orders[number].job
            assert receipt.identity == await attempts[number].started()


async def check_what_cannot_start_says_why(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order("/no/such/program"))
        assert await attempt.started() is None
        receipt = await attempt.exited()
        assert receipt.ending == "spawn"
        assert receipt.error
        assert receipt.started_at is None


async def check_a_receipt_tells_no_secret(open_: Open, order: MakeOrder) -> None:
    value = "s3cret-of-the-house"
    async with open_() as launcher:
        for number, program in enumerate(("false", "/no/such/program")):
            wanted = order(program, job=f"job-{number}")
            wanted = structs.replace(wanted, secrets=Secrets(TOKEN=value))
            receipt = await launcher.launch(wanted).exited()
            assert value not in repr(receipt)
            assert value not in repr(wanted)


async def check_stop_gives_the_ending_it_was_asked_for(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order(*SLEEP))
        attempt.stop(grace=5, ending="wall")
        assert (await attempt.exited()).ending == "wall"


async def check_stop_after_the_end_does_nothing(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order("false"))
        receipt = await attempt.exited()
        attempt.stop()
        assert await attempt.exited() == receipt
        again = launcher.launch(order("true", job="again"))
        assert (await again.exited()).ending == "exit"


async def check_leaving_ends_what_runs(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order(*SLEEP))
        await attempt.started()
    assert (await attempt.exited()).ending == "owner"


async def check_a_paused_attempt_can_be_stopped(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order(*SLEEP))
        attempt.pause()
        attempt.stop(grace=60)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal) == ("stop", "SIGTERM")
        assert not receipt.forced


async def check_pausing_twice_and_resuming_what_runs_do_nothing(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order(*SLEEP))
        attempt.resume()
        attempt.stop()
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.paused_seconds) == ("stop", 0)
        second = launcher.launch(order(*SLEEP, attempt=2))
        for call in (second.pause, second.pause, second.resume, second.resume):
            call()
        second.stop()
        assert (await second.exited()).ending == "stop"


async def check_pausing_after_the_end_does_nothing(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order("false"))
        receipt = await attempt.exited()
        attempt.pause()
        attempt.resume()
        assert await attempt.exited() == receipt
        assert receipt.paused_seconds == 0
        again = launcher.launch(order("true", job="again"))
        assert (await again.exited()).ending == "exit"


async def check_leaving_ends_what_is_paused(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        attempt = launcher.launch(order(*SLEEP))
        await attempt.started()
        attempt.pause()
    receipt = await attempt.exited()
    assert (receipt.ending, receipt.forced) == ("owner", False)


async def check_what_follows_a_job_is_told_and_changes_nothing(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        for number, argv in enumerate([("false",), SLEEP, ("/no/such/program",)]):
            wanted = order(*argv, job=f"job-{number}")
            attempt = launcher.launch(structs.replace(wanted, after_job="true"))
            if argv == SLEEP:
                attempt.stop()
            receipt = await attempt.exited()
            began = await attempt.started() is not None
            assert began == (argv != ("/no/such/program",))
            assert receipt.after_job == (AfterJob(exit_code=0) if began else None)
            assert receipt.exit_code == (1 if argv == ("false",) else None)
            assert receipt.ending == ["exit", "stop", "spawn"][number]


async def check_artifacts_are_collected_whatever_a_job_came_to(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        for number, argv in enumerate([("false",), SLEEP, ("/no/such/program",)]):
            wanted = order(*argv, job=f"job-{number}")
            patterns = ArtifactOrder(("*",), wanted.cwd, 10, 1 << 20, 60.0)
            wanted = structs.replace(wanted, artifacts=patterns, after_job="true")
            attempt = launcher.launch(wanted)
            if argv == SLEEP:
                attempt.stop()
            receipt = await attempt.exited()
            began = await attempt.started() is not None
            assert (receipt.artifacts is not None) == began
            if receipt.artifacts is not None:
                assert receipt.artifacts.error is None
            assert receipt.after_job == (AfterJob(exit_code=0) if began else None)
            assert receipt.ending == ["exit", "stop", "spawn"][number]
            assert receipt.complete


async def check_nothing_starts_after_the_end(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        pass
    try:
        launcher.launch(order("true"))
    except LauncherDown:
        return
    raise AssertionError("launch after the end did not raise LauncherDown")


async def check_forget_may_be_repeated(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        wanted = order("true")
        attempt = launcher.launch(wanted)
        receipt = await attempt.exited()
        launcher.forget(wanted.job, 1)
        launcher.forget(wanted.job, 1)
        launcher.forget("no such job", 1)
        assert await attempt.exited() == receipt


async def check_forget_leaves_a_running_attempt_alone(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        wanted = order(*SLEEP)
        attempt = launcher.launch(wanted)
        identity = await attempt.started()
        launcher.forget(wanted.job, 1)
        assert await launcher.launch(order(*SLEEP)).started() == identity
        attempt.stop()
        assert (await attempt.exited()).ending == "stop"


async def check_wait_output_ends_with_the_attempt(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        wanted = order(*SLEEP)
        attempt = launcher.launch(wanted)
        async with trio.open_nursery() as nursery:
            for known in (0, 0, 1000):
                nursery.start_soon(launcher.wait_output, wanted.job, 1, known)
            await trio.testing.wait_all_tasks_blocked()
            attempt.stop()
        await attempt.exited()
        await launcher.wait_output(wanted.job, 1, 0)
        await launcher.wait_output("no such job", 1, 0)


async def check_a_cancelled_wait_harms_nobody(open_: Open, order: MakeOrder) -> None:
    async with open_() as launcher:
        wanted = order(*SLEEP)
        attempt = launcher.launch(wanted)
        for wait in (
            attempt.exited,
            lambda: launcher.wait_output(wanted.job, 1, 0),
        ):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        attempt.stop()
        assert (await attempt.exited()).ending == "stop"


async def check_whoever_asks_is_called_once_an_attempt_has_settled(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        for job, argv in (("a", ("true",)), ("b", ("/no/such/program",)), ("c", SLEEP)):
            attempt = launcher.launch(order(*argv, job=job))
            called: list[Receipt | None] = []

            def notify(
                attempt: RunningAttempt = attempt,
                called: list[Receipt | None] = called,
            ) -> None:
                called.append(attempt.receipt)

            later = attempt.once_settled(notify)
            assert called == []
            identity = await attempt.started()
            assert identity is None or argv[0] != "/no/such/program"
            assert not attempt.once_settled(notify), "it is known by now"
            attempt.stop()
            await attempt.exited()
            assert len(called) == int(later)
            if later and argv[0] == "/no/such/program":
                assert called == [attempt.receipt]


async def check_what_has_no_room_waits_for_the_end_of_another(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        first = launcher.launch(order(*SLEEP, job="a"))
        await first.started()

        wanted = order("true", job="b"), order(*SLEEP, job="c"), order("true", job="d")
        behind = [structs.replace(each, room=1) for each in wanted]
        second, third, last = map(launcher.launch, behind)
        for each in (first, last):  # of which one has begun, so nothing comes of it
            each.stop(ending="withdrawn")
        receipt = await last.exited()
        assert (receipt.ending, receipt.identity) == ("withdrawn", None)
        first.stop()
        assert (await second.exited()).exit_code == 0
        assert await third.started() is not None


async def check_descriptors_are_closed_once_it_has_begun_or_never_will(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        for job, argv in (("a", SLEEP), ("b", ("/no/such/program",))):
            given = some_descriptors()
            attempt = launcher.launch(order(*argv, job=job), given)
            identity = await attempt.started()
            assert (identity is None) == (argv != SLEEP)
            assert given.numbers == ()
            again = some_descriptors()
            assert await launcher.launch(order(*argv, job=job), again).started() == (
                identity
            )
            assert again.numbers == (), "it has begun without these"
            attempt.stop()
            await attempt.exited()
    late = some_descriptors()
    try:
        launcher.launch(order("true", job="late"), late)
    except LauncherDown:
        assert late.numbers == ()
        return
    raise AssertionError("launch after the end did not raise LauncherDown")


async def check_what_lasts_has_no_budgets_and_ends_when_it_obeys(
    open_: Open, order: MakeOrder
) -> None:
    async with open_() as launcher:
        brief = structs.replace(order(*SLEEP), lasting=True, wall=0.001, idle=0.001)
        attempt = launcher.launch(brief)
        assert await attempt.started() is not None
        attempt.pause()  # changes nothing
        other = launcher.launch(order("true", job="other"))
        assert (await other.exited()).ending == "exit"
        assert attempt.receipt is None
        for _ in range(3):
            attempt.stop(grace=0.0)
        receipt = await attempt.exited()
        assert (receipt.ending, receipt.signal) == ("stop", brief.stop_signal)
        assert not receipt.forced


CHECKS: tuple[Check, ...] = (
    check_one_attempt_is_one_process,
    check_the_next_attempt_is_another_process,
    check_every_attempt_has_one_receipt,
    check_what_cannot_start_says_why,
    check_a_receipt_tells_no_secret,
    check_stop_gives_the_ending_it_was_asked_for,
    check_stop_after_the_end_does_nothing,
    check_leaving_ends_what_runs,
    check_a_paused_attempt_can_be_stopped,
    check_pausing_twice_and_resuming_what_runs_do_nothing,
    check_pausing_after_the_end_does_nothing,
    check_leaving_ends_what_is_paused,
    check_what_follows_a_job_is_told_and_changes_nothing,
    check_artifacts_are_collected_whatever_a_job_came_to,
    check_nothing_starts_after_the_end,
    check_forget_may_be_repeated,
    check_forget_leaves_a_running_attempt_alone,
    check_wait_output_ends_with_the_attempt,
    check_a_cancelled_wait_harms_nobody,
    check_whoever_asks_is_called_once_an_attempt_has_settled,
    check_what_has_no_room_waits_for_the_end_of_another,
    check_descriptors_are_closed_once_it_has_begun_or_never_will,
    check_what_lasts_has_no_budgets_and_ends_when_it_obeys,
)
