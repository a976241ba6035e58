"""A large batch lets others have their turn while it is checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.requests import JobRequest
from forge_actors.runtime.admission import BUILT_AT_ONCE, Admission
from tests.runtime.admission_kit import admission

if TYPE_CHECKING:
    from pathlib import Path

    from tests.runtime.admission_kit import Case

COUNT = 4 * BUILT_AT_ONCE


async def turns_during(case: Case, requests: list[JobRequest]) -> int:
    """How many turns another task has while the batch is accepted."""
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await case.admission.submit(requests)
        nursery.cancel_scope.cancel()
    return turns


async def test_others_have_their_turn_unless_something_is_to_be_unique(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        plain = [JobRequest("app", ["true"]) for _ in range(COUNT)]
        few = await turns_during(case, plain[:1])
        assert await turns_during(case, plain) >= few + COUNT // BUILT_AT_ONCE - 1
        plain[-1].unique = "key"
        assert await turns_during(case, plain) <= few + 1
        assert case.store.active == 2 * COUNT + 1


async def test_a_bad_job_at_the_end_of_a_batch_leaves_nothing_of_it(
    tmp_path: Path,
) -> None:
    async with admission(tmp_path) as case:
        requests = [JobRequest("app", ["true"]) for _ in range(COUNT)]
        requests[-1].kind = "chekc"
        with pytest.raises(InvalidInput, match=rf"jobs\[{COUNT - 1}\]\.kind"):
            await case.admission.submit(requests)
        assert case.store.active == 0


async def test_a_repository_that_is_removed_meanwhile_takes_no_jobs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with admission(tmp_path) as case, trio.open_nursery() as nursery:
        app = case.registry.named("app")
        build = Admission._build
        first = True

        def removing(self: Admission, *place: Any) -> Any:
            nonlocal first
            if first:
                nursery.start_soon(case.registry.remove, app)
            first = False
            return build(self, *place)

        monkeypatch.setattr(Admission, "_build", removing)
        requests = [JobRequest("app", ["true"]) for _ in range(COUNT)]
        with pytest.raises(NotFound, match="was removed"):
            await case.admission.submit(requests)
        assert case.store.active == 0
