"""What every runtime keeps, the one in memory and the real one, as checks of both.

Call each of `CHECKS` with a runtime and a folder that is a repository to it. Its jobs
need these commands: `true` exits with 0, `false` with 1, `echo WORDS` prints them,
`sleep N` takes so many seconds; `/no/such/program` cannot start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import JobRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from forge_actors.runtime.handles import Runtime
    from forge_actors.runtime.job_handle import JobHandle

    Check = Callable[[Runtime, Path], Awaitable[None]]


async def check_a_job_ends_as_its_command_does(runtime: Runtime, repo: Path) -> None:
    ends = {"true": ("succeeded", 0), "false": ("failed", 1)}
    for command, end in ends.items():
        view = await (await runtime.submit(repo, [command])).wait()
        assert (view.state, view.exit_code) == end, command
    view = await (await runtime.submit(repo, ["/no/such/program"])).wait()
    assert view.state != "succeeded"
    assert view.error is not None
    assert "/no/such/program" in view.error.message


async def check_what_a_job_prints_is_read_back(runtime: Runtime, repo: Path) -> None:
    job = await runtime.submit(repo, ["echo", "hello", "there"])
    assert b"".join([piece async for piece in job.output()]) == b"hello there\n"
    assert (await job.read(), await job.read("stderr")) == (b"hello there\n", b"")


async def check_the_events_of_a_job_are_in_order(runtime: Runtime, repo: Path) -> None:
    job = await runtime.submit(repo, ["true"])
    events = [event async for event in job.events()]
    kinds = [event.kind for event in events if event.kind != "job_running"]
    assert kinds == ["job_queued", "job_dispatched", "job_succeeded"]
    assert [event.seq for event in events] == sorted(event.seq for event in events)


async def check_a_stop_ends_a_job_and_frees_what_it_held(
    runtime: Runtime, repo: Path
) -> None:
    first = await _that_runs(runtime, repo)
    second = await runtime.submit(repo, ["true"])
    assert first.id in await second.why()  # both would write to the checkout
    await first.cancel()
    assert (await first.wait()).state == "cancelled"
    assert (await second.wait()).state == "succeeded"
    assert (await first.cancel()).state == "cancelled"


async def check_a_time_budget_ends_a_job(runtime: Runtime, repo: Path) -> None:
    job = await runtime.submit(repo, ["sleep", "4711.75"], timeout=1)
    view = await job.wait()
    assert (view.state, view.error and view.error.code) == (
        "timed_out",
        "EXECUTION_TIMEOUT",
    )


async def check_a_job_runs_after_another_and_not_after_its_failure(
    runtime: Runtime, repo: Path
) -> None:
    name = (await runtime.add_repository(repo)).name
    requests = [
        JobRequest(repo=name, argv=["false"], name="first"),
        JobRequest(repo=name, argv=["true"], after=["first"], name="second"),
        JobRequest(repo=name, argv=["true"], name="third"),
    ]
    jobs = await runtime.submit_all(requests)
    views = [await job.wait() for job in jobs]
    states = [view.state for view in views]
    assert states == ["failed", "human_attention_required", "succeeded"]
    again = await jobs[2].retry()
    assert (await again.wait()).retry_of == jobs[2].id


async def check_what_is_held_waits(runtime: Runtime, repo: Path) -> None:
    await runtime.pause()
    job = await runtime.submit(repo, ["true"])
    await job.hold()
    await runtime.resume()
    assert (await job.show()).state == "queued"
    await job.unhold()
    assert (await job.wait()).state == "succeeded"


async def check_steps_of_a_workflow_follow_each_other(
    runtime: Runtime, repo: Path
) -> None:
    steps = [
        {"name": "one", "job": {"argv": ["true"]}},
        {"name": "two", "after": ["one"], "job": {"argv": ["false"]}},
    ]
    name = (await runtime.add_repository(repo)).name
    flow = await runtime.run_workflow("contract", repo=name, steps=steps)
    view = await flow.wait()
    told = {step.name: step.state for step in view.steps}
    assert (view.state, told) == ("failed", {"one": "succeeded", "two": "failed"})


async def check_what_is_wrong_is_refused(runtime: Runtime, repo: Path) -> None:
    for wrong in (
        runtime.submit(repo, ["true"], nothing="like this"),
        runtime.submit(repo.parent, ["true"]),
        runtime.submit(repo, ["true"], priority="P9"),
    ):
        await _refused(wrong, InvalidInput)
    await _refused(runtime.submit("nowhere", ["true"]), NotFound)
    await _refused(runtime.job("nowhere"), NotFound)
    await _refused(runtime.schedule("nowhere"), NotFound)
    await _refused(runtime.change_settings({"gateway": {"streams": 3}}), Refused)


async def _that_runs(runtime: Runtime, repo: Path) -> JobHandle:
    job = await runtime.submit(repo, ["sleep", "4711.75"])
    async for event in job.events():
        if event.kind == "job_running":
            break
    return job


async def _refused(call: Awaitable[object], kind: type[Exception]) -> None:
    try:
        await call
    except kind:
        return
    raise AssertionError(f"it is not refused as {kind.__name__}")


CHECKS: tuple[Check, ...] = (
    check_a_job_ends_as_its_command_does,
    check_what_a_job_prints_is_read_back,
    check_the_events_of_a_job_are_in_order,
    check_a_stop_ends_a_job_and_frees_what_it_held,
    check_a_time_budget_ends_a_job,
    check_a_job_runs_after_another_and_not_after_its_failure,
    check_what_is_held_waits,
    check_steps_of_a_workflow_follow_each_other,
    check_what_is_wrong_is_refused,
)
