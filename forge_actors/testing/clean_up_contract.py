"""What every clean-up keeps, as checks to run against one.

Call each of `CHECKS` with a function that makes a clean-up whose classes do what the
rules of the order say (see `clean_up.py`); it is given where to find when they were
visited, and where their home is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio

from forge_actors.domain.cleaning import CLASSES, CleanRequest
from forge_actors.domain.errors import CleanUpFailed, StoreFailed
from forge_actors.domain.maintenance import CleanLimits, CleanOrder

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from forge_actors.domain.cleaning import ClassReport, CleanClass
    from forge_actors.domain.ports import CleanUp
    from forge_actors.domain.worktrees import Worktree

    Make = Callable[[dict[CleanClass, float]], tuple[CleanUp, str]]
    Check = Callable[[Make], Awaitable[None]]


class Noting:
    """The `Books` of a check: they note what is asked, and do it."""

    def __init__(self) -> None:
        self.visits: list[CleanClass] = []
        self.reports: list[ClassReport] = []
        self.visits_now = trio.Event()
        #: What refuses to be done.
        self.refused = ""

    async def visiting(self, clean_class: CleanClass) -> str | None:
        self.visits.append(clean_class)
        self.visits_now.set()
        return None

    async def visited(self, report: ClassReport) -> None:
        self.reports.append(report)

    async def forget_jobs(self, jobs: Sequence[str]) -> list[str]:
        if self.refused:
            raise StoreFailed(self.refused)
        return list(jobs)

    async def forget_events(self, before: int) -> int:
        return before

    async def record(self, worktree: Worktree, step: str) -> None:
        raise StoreFailed(self.refused)

    async def upkeep(self) -> int:
        return 0


def order(home: str, limits: CleanLimits | None = None, **behave: str) -> CleanOrder:
    """An order in which classes behave like this."""
    request = CleanRequest(home, 1000.0)
    return CleanOrder(request, limits or CleanLimits(), rules={"behave": behave})


async def _failure(clean_up: CleanUp, told: CleanOrder, books: Noting) -> CleanUpFailed:
    try:
        await clean_up.run(told, books)
    except CleanUpFailed as error:
        return error
    raise AssertionError("it went well")


async def check_it_visits_the_one_that_waited_longest_first(make: Make) -> None:
    moments: dict[CleanClass, float] = dict.fromkeys(CLASSES, 50.0)
    moments |= {"backups": 10.0, "logs": 20.0}
    clean_up, home = make(moments)
    books = Noting()
    result = await clean_up.run(order(home), books)
    rest = [name for name in CLASSES if name not in ("backups", "logs")]
    assert books.visits == ["backups", "logs", *rest]
    assert [each.clean_class for each in result.reports] == books.visits
    assert [each.clean_class for each in books.reports] == books.visits
    assert result.error is None


async def check_a_class_that_fails_spoils_no_other(make: Make) -> None:
    clean_up, home = make({})
    books = Noting()
    result = await clean_up.run(order(home, events="fail:no"), books)
    assert books.visits == list(CLASSES)
    failed = {each.clean_class: each.error for each in result.reports if each.failed}
    assert failed == {"events": "RuntimeError: no"}
    assert result.failure == "events: RuntimeError: no"


async def check_what_it_asks_for_is_done_and_named(make: Make) -> None:
    clean_up, home = make({})
    result = await clean_up.run(order(home, jobs="forget:a,b"), Noting())
    assert [each.what for each in result.removals] == ["a", "b"]
    assert result.removed == 2


async def check_what_is_refused_is_a_failure_of_its_class(make: Make) -> None:
    clean_up, home = make({})
    books = Noting()
    books.refused = "nothing can be saved now"
    result = await clean_up.run(order(home, jobs="forget:a"), books)
    assert books.visits == list(CLASSES)
    assert "nothing can be saved now" in (result.failure or "")


async def check_one_that_crashes_fails_and_says_what_it_did(make: Make) -> None:
    clean_up, home = make({})
    books = Noting()
    told = order(home, jobs="forget:a", events="crash")
    failure = await _failure(clean_up, told, books)
    assert "too early with status 9" in str(failure)
    assert failure.result is not None
    assert failure.result.removed == 1
    assert books.visits == list(CLASSES[: CLASSES.index("events") + 1])


async def check_one_that_hangs_is_ended_and_fails(make: Make) -> None:
    clean_up, home = make({})
    books = Noting()
    short = CleanLimits(seconds=5.0)
    failure = await _failure(clean_up, order(home, short, logs="hang"), books)
    assert "took too long" in str(failure)
    assert books.visits[-1] == "logs"


async def check_one_that_is_cancelled_is_gone(make: Make) -> None:
    clean_up, home = make({})
    books = Noting()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(clean_up.run, order(home, jobs="hang"), books)
        await books.visits_now.wait()
        nursery.cancel_scope.cancel()
    assert books.visits == ["jobs"]


async def check_one_after_the_other_may_run(make: Make) -> None:
    clean_up, home = make({})
    for _ in range(2):
        books: Any = Noting()
        result = await clean_up.run(order(home), books)
        assert len(result.reports) == len(CLASSES)


CHECKS = [
    check_it_visits_the_one_that_waited_longest_first,
    check_a_class_that_fails_spoils_no_other,
    check_what_it_asks_for_is_done_and_named,
    check_what_is_refused_is_a_failure_of_its_class,
    check_one_that_crashes_fails_and_says_what_it_did,
    check_one_that_hangs_is_ended_and_fails,
    check_one_that_is_cancelled_is_gone,
    check_one_after_the_other_may_run,
]
