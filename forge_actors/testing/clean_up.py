"""A clean-up without a process: its classes do what the rules of the order say.

    rules={"behave": {"logs": "crash", "jobs": "forget:a,b"}}

`Behaviour` lists what there is. The order in which it visits is that of the real
program. It keeps the contract of `clean_up_contract.py`, as the real one does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.cleaning import ClassReport, Removal
from forge_actors.domain.errors import CleanUpFailed, ForgeError
from forge_actors.domain.maintenance import CleanResult, oldest_first

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.cleaning import CleanClass
    from forge_actors.domain.maintenance import Books, CleanOrder

#: Seconds that a run may take beyond its own, as the real one.
OVERTIME = 20.0


class FakeCleanUp:
    """The port `CleanUp`."""

    def __init__(self, visited_at: Callable[[], dict[CleanClass, float]]) -> None:
        #: What the real program reads in the store.
        self._visited_at = visited_at
        #: The orders of all runs, and those that go on.
        self.orders: list[CleanOrder] = []
        self.running = 0
        #: The most that ever went on at once.
        self.most = 0
        #: Set by a test: a run does not begin before.
        self.may_begin = trio.Event()
        self.may_begin.set()

    async def run(self, order: CleanOrder, books: Books) -> CleanResult:
        """See the port."""
        self.orders.append(order)
        self.running += 1
        self.most = max(self.most, self.running)
        result = CleanResult(dry_run=order.request.dry_run)
        try:
            await self.may_begin.wait()
            with trio.fail_after(order.limits.seconds + OVERTIME):
                await self._visit_all(order, books, result)
        except trio.TooSlowError:
            told = "the clean-up took too long and was ended"
            raise CleanUpFailed(told, result) from None
        except CleanUpFailed as error:
            error.result = result
            raise
        finally:
            self.running -= 1
        return result

    async def _visit_all(
        self, order: CleanOrder, books: Books, result: CleanResult
    ) -> None:
        deadline = trio.current_time() + order.limits.seconds
        behave = order.rules.get("behave", {})
        for name in oldest_first(self._visited_at(), order.request.classes):
            if trio.current_time() >= deadline:
                return
            if not order.request.dry_run:
                await books.visiting(name)
            report = ClassReport(name)
            try:
                await self._behave(behave.get(name, ""), books, report, result)
            except ForgeError as error:
                if isinstance(error, CleanUpFailed):
                    raise
                report.failed, report.error = 1, str(error)
            result.reports.append(report)
            await books.visited(report)

    async def _behave(
        self, how: str, books: Books, report: ClassReport, result: CleanResult
    ) -> None:
        verb, _, rest = how.partition(":")
        match verb:
            case "crash":
                raise CleanUpFailed("the clean-up ended too early with status 9")
            case "hang":
                await trio.sleep_forever()
            case "take":
                await trio.sleep(float(rest))
            case "fail":
                report.failed, report.error = 1, f"RuntimeError: {rest}"
            case "cursor":
                report.cursor = rest
            case "due":
                report.due_at = float(rest)
            case "forget":
                for job in await books.forget_jobs(rest.split(",")):
                    report.removed += 1
                    result.removals.append(Removal("jobs", job, "it is old"))
            case "upkeep":
                await books.upkeep()
            case _:
                assert how == "", how
