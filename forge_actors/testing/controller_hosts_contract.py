"""What every controller host does, as checks.

@pytest.mark.parametrize("check", CHECKS)
async def test_the_contract(check):
    async with my_bench() as bench:
        await check(bench)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from forge_actors.domain.controller_hosts import Continuation
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from forge_actors.domain.controller_hosts import ControllerHost


class HostBench(Protocol):
    """A host with a session that it can have go on."""

    host: ControllerHost
    #: The id of its repository, its last job, and what leads to it.
    repo: str
    job: str | None
    binding: dict[str, Any]
    #: One that is none of this host.
    nonsense: dict[str, Any]

    async def lose(self) -> None:
        """The session cannot go on any more."""


def _continuation(bench: HostBench, wake: str) -> Continuation:
    binding = bench.host.check(bench.binding, bench.job)
    origin = "continuation:c"
    return Continuation(wake, "c", bench.repo, binding, bench.job, "Go on.", origin)


async def check_a_binding_has_one_form(bench: HostBench) -> None:
    kept = bench.host.check(bench.binding, bench.job)
    assert bench.host.check(kept, bench.job) == kept
    wrong = ""
    try:
        bench.host.check(bench.nonsense, bench.job)
    except InvalidInput as error:
        wrong = error.field
    assert wrong.startswith("binding"), "nonsense is a binding"


async def check_what_was_accepted_is_found(bench: HostBench) -> None:
    host = bench.host
    assert await host.found("w1") is None
    told = await host.resume(_continuation(bench, "w1"))
    assert told.answer == "accepted", told
    assert told.dispatch
    assert await host.found("w1") == told
    assert await host.found("w2") is None


async def check_what_was_not_accepted_has_not_begun(bench: HostBench) -> None:
    continuation = _continuation(bench, "w3")
    await bench.lose()
    told = await bench.host.resume(continuation)
    assert told.answer in ("wait", "wait_for_user", "rejected"), told
    assert told.reason
    assert await bench.host.found("w3") is None


CHECKS = (
    check_a_binding_has_one_form,
    check_what_was_accepted_is_found,
    check_what_was_not_accepted_has_not_begun,
)
