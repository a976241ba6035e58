"""What every store keeps of schedules, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from msgspec import structs

from forge_actors.domain.causes import Traits
from forge_actors.domain.events import Event
from forge_actors.domain.schedule_changes import (
    OccurrenceSaved,
    ScheduleRemoved,
    ScheduleSaved,
)
from forge_actors.domain.schedules import MAX_OCCURRENCES, Occurrence
from forge_actors.domain.workflow_changes import WorkflowAdded
from forge_actors.testing.made_changes import (
    dispatched,
    ended,
    ended_waiting,
    job,
    ran,
    repository,
)

if TYPE_CHECKING:
    from typing import Protocol

    from forge_actors.actors.lookout_messages import EndsStore
    from forge_actors.actors.schedules_messages import ScheduleStore
    from forge_actors.testing.store_contract import Open

    class _Keeper(ScheduleStore, EndsStore, Protocol):
        def occurrences(self, schedule: str, limit: int) -> list[Occurrence]: ...


def told(number: int, schedule: str = "a") -> Occurrence:
    of, key, due = f"occ-{schedule}-{number}", f"every-{number}", float(number)
    return Occurrence(of, schedule, key, due, due + 1, "run", "it is time", "job")


async def check_a_schedule_is_kept_as_it_was_last(open_: Open) -> None:
    event = Event("schedule_added", 1.0)
    async with open_() as store:
        await store.save(
            [
                ScheduleSaved("a", "zebra", b"1", event),
                ScheduleSaved("b", "ant", b"2", event),
            ]
        ).wait()
        # Renamed to what another one was called until then.
        removed = ScheduleRemoved("b", Event("schedule_removed", 2.0))
        renamed = ScheduleSaved("a", "ant", b"3")
        await store.save([removed, renamed]).wait()
    async with open_() as store:
        assert cast("_Keeper", store).schedules() == [("a", "ant", b"3")]


async def check_windows_are_told_newest_first_and_bounded(open_: Open) -> None:
    async with open_() as store:
        event = Event("schedule_added", 1.0)
        await store.save([ScheduleSaved("a", "a", b"", event)]).wait()
        windows = [OccurrenceSaved(told(number)) for number in range(1, 5)]
        assert not cast("_Keeper", store).decided("occ-a-1")
        saved = store.save(windows[:1])
        assert cast("_Keeper", store).decided("occ-a-1"), "at once"
        await saved.wait()
        await store.save([*windows, OccurrenceSaved(told(9, "other"))]).wait()
        again = structs.replace(told(3), decision="failed", job=None)
        await store.save([OccurrenceSaved(again)]).wait()
        keeper = cast("_Keeper", store)
        assert keeper.occurrences("a", 3) == [told(4), again, told(2)]
        many = range(10, 10 + MAX_OCCURRENCES + 20)
        await store.save([OccurrenceSaved(told(number)) for number in many]).wait()
        kept = keeper.occurrences("a", 10_000)
        assert [one.due for one in kept[:2]] == [many[-1], many[-2]]
        assert len(kept) == MAX_OCCURRENCES
        await store.save([ScheduleRemoved("a", event)]).wait()
        assert keeper.occurrences("a", 10) == []
        assert keeper.occurrences("other", 10) == [told(9, "other")]


async def check_the_job_of_a_window_is_known_at_once(open_: Open) -> None:
    added = job()
    details = structs.replace(added.details, request_id="occ-1", digest="d")
    async with open_() as store:
        await store.save([repository()]).wait()
        keeper = cast("_Keeper", store)
        assert keeper.job_of_request("occ-1") is None
        saved = store.save([structs.replace(added, details=details)])
        assert keeper.job_of_request("occ-1") == "job"
        await saved.wait()
        await store.save([dispatched(), ran(), ended()]).wait()
        assert 8.0 <= keeper.ran("job") <= 9.0


async def check_what_ended_is_told_of_a_repository(open_: Open) -> None:
    """And is found in the history, from where somebody had read it."""
    rang: list[str] = []
    async with open_() as store:
        keeper = cast("_Keeper", store)
        await store.save([repository(), repository("other")]).wait()
        named = job(kind="check")
        details = structs.replace(
            named.details, name="tests", labels=("a", "b"), origin="schedule:x"
        )
        named = structs.replace(named, details=details)
        await store.save([named, job("second", "other")]).wait()
        before = keeper.last_event()
        assert (keeper.state("job"), keeper.state("nobody")) == ("queued", None)
        keeper.hear_ends("repo", lambda: rang.append("repo"))
        saved = store.save([ended_waiting(state="cancelled")])
        store.save([ended_waiting("second", "other", state="failed")])
        assert rang == []
        await saved.wait()
        assert (rang, keeper.state("job")) == (["repo"], "cancelled")
        kinds = ("job_cancelled", "job_failed")
        fields = {"kind": kinds, "repo": ("repo",)}
        [event] = keeper.find_events(before, keeper.last_event(), fields)
        assert (event.job, event.seq > before) == ("job", True)
        assert keeper.find_events(event.seq, keeper.last_event(), fields) == []
        traits = Traits("job", "check", "tests", ("a", "b"), "schedule:x")
        assert (keeper.traits("job"), keeper.traits("nobody")) == (traits, None)
        began = Event("workflow_began", 1.0)
        body = b'{"origin":"schedule:x"}'
        flow = WorkflowAdded("1w", "flow", "running", b"", body, None, began)
        await store.save([flow, job("step", work="1w"), job("odd", work="2w")]).wait()
        step, odd = keeper.traits("step"), keeper.traits("odd")
        assert step is not None
        assert odd is not None
        assert (step.began, odd.began) == ("schedule:x", "")
        keeper.hear_ends("repo", None)
        await store.save([job("third"), ended_waiting("third")]).wait()
        assert rang == ["repo"]


async def check_the_window_of_a_job_is_known(open_: Open) -> None:
    async with open_() as store:
        keeper = cast("_Keeper", store)
        of_window = structs.replace(job().details, request_id=told(1).id, digest="d")
        await store.save([repository(), job("other")]).wait()
        await store.save([structs.replace(job(), details=of_window)]).wait()
        assert keeper.window_of("job") is None
        await store.save([OccurrenceSaved(told(1))]).wait()
        assert keeper.window_of("job") == "every-1"
        assert keeper.window_of("other") is None


CHECKS = (
    check_a_schedule_is_kept_as_it_was_last,
    check_windows_are_told_newest_first_and_bounded,
    check_the_job_of_a_window_is_known_at_once,
    check_what_ended_is_told_of_a_repository,
    check_the_window_of_a_job_is_known,
)
