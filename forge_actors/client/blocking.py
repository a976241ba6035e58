"""The client for plain programs: the same verbs, and each call waits for its answer.

    client = BlockingClient()
    job = client.submit("app", ["make", "test"], kind="check")
    [view] = client.wait(job.id)

It needs no event loop, and runs in any thread: every call has a connection of its own.
"""

from __future__ import annotations

import functools
import json
from contextlib import contextmanager
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    Self,
    TypeVar,
)

from forge_actors.client.aio import Client
from forge_actors.client.answers import Answer
from forge_actors.client.home import resolve_home
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import os
    from collections.abc import (
        AsyncIterator,
        Awaitable,
        Callable,
        Coroutine,
        Generator,
        Iterator,
    )
    from contextlib import AbstractAsyncContextManager, AbstractContextManager

    from forge_actors.client.sync import Parameters

P = ParamSpec("P")
R = TypeVar("R")


class _WaitingAnswer(Answer):
    """An answer that is read as it is asked for; nothing of it is ever awaited."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        close = getattr(self._pieces, "close", None)
        if close is not None:
            close()

    async def __anext__(self) -> bytes:
        for piece in self._pieces:
            return piece
        raise StopAsyncIteration


class _WaitingClient(Client):
    """The calls of the client over a connection that blocks, so that each of them is
    over when its coroutine is first looked at."""

    def __init__(self, home: str) -> None:
        super().__init__(home)
        self._service = Service(home)

    async def _send(
        self,
        method: str,
        path: tuple[str, ...],
        *,
        body: object = None,
        query: Parameters = (),
    ) -> Answer:
        data = None if body is None else json.dumps(body).encode("ascii")
        return _WaitingAnswer(
            self._service.stream(method, path, body=data, query=query)
        )


def _over(call: Awaitable[R]) -> R:
    """What a call came to that awaits nothing."""
    waiting = call.__await__()
    try:
        next(waiting)
    except StopIteration as done:
        result: R = done.value
        return result
    raise AssertionError("a waiting call has awaited something")


class _Calls(Generic[P, R]):
    """A call of the client as a method that waits."""

    def __init__(
        self, call: Callable[Concatenate[Client, P], Coroutine[Any, Any, R]]
    ) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(
        self, client: BlockingClient, _: type[BlockingClient]
    ) -> Callable[P, R]:
        @functools.wraps(self._call.__get__(client.calls))
        def wait(*args: P.args, **kwargs: P.kwargs) -> R:
            return _over(self._call(client.calls, *args, **kwargs))

        return wait


class _Streams(Generic[P, R]):
    """The same for one whose answer is read piece by piece, within a `with`."""

    def __init__(
        self,
        call: Callable[
            Concatenate[Client, P], AbstractAsyncContextManager[AsyncIterator[R]]
        ],
    ) -> None:
        self._call = call
        self.__doc__ = call.__doc__

    def __get__(
        self, client: BlockingClient, _: type[BlockingClient]
    ) -> Callable[P, AbstractContextManager[Iterator[R]]]:
        @functools.wraps(self._call.__get__(client.calls))
        @contextmanager
        def wait(*args: P.args, **kwargs: P.kwargs) -> Generator[Iterator[R]]:
            manager = self._call(client.calls, *args, **kwargs)
            pieces = _over(manager.__aenter__())
            try:
                yield _each(pieces)
            finally:
                _over(manager.__aexit__(None, None, None))

        return wait


def _each(pieces: AsyncIterator[R]) -> Iterator[R]:
    while True:
        try:
            piece = _over(pieces.__anext__())
        except StopAsyncIteration:
            return
        yield piece


class BlockingClient:
    """The service of one home. The methods are those of `Client`, and may raise what
    those do; none is left out.

    Raises:
        Unavailable: from every method, if no service runs there.
    """

    def __init__(self, home: str | os.PathLike[str] | None = None) -> None:
        self.calls = _WaitingClient(resolve_home(None if home is None else str(home)))
        self.home = self.calls.home

    add_controller = _Calls(Client.add_controller)
    add_repository = _Calls(Client.add_repository)
    add_schedule = _Calls(Client.add_schedule)
    answer = _Calls(Client.answer)
    answer_workflow = _Calls(Client.answer_workflow)
    apply = _Calls(Client.apply)
    apply_schedules = _Calls(Client.apply_schedules)
    approve = _Calls(Client.approve)
    artifact = _Streams(Client.artifact)
    artifacts = _Calls(Client.artifacts)
    cancel = _Calls(Client.cancel)
    cancel_all = _Calls(Client.cancel_all)
    cancel_workflow = _Calls(Client.cancel_workflow)
    check_fence = _Calls(Client.check_fence)
    clean = _Calls(Client.clean)
    continue_job = _Calls(Client.continue_job)
    controller = _Calls(Client.controller)
    controller_wakes = _Calls(Client.controller_wakes)
    controllers = _Calls(Client.controllers)
    deny = _Calls(Client.deny)
    diff = _Calls(Client.diff)
    dismiss = _Calls(Client.dismiss)
    distrust_repository = _Calls(Client.distrust_repository)
    drain = _Calls(Client.drain)
    edit = _Calls(Client.edit)
    edit_schedule = _Calls(Client.edit_schedule)
    enable_repository = _Calls(Client.enable_repository)
    end_policy = _Calls(Client.end_policy)
    epic = _Calls(Client.epic)
    epics = _Calls(Client.epics)
    events = _Streams(Client.events)
    hold = _Calls(Client.hold)
    inbox = _Calls(Client.inbox)
    job = _Calls(Client.job)
    jobs = _Calls(Client.jobs)
    keep_worktrees = _Calls(Client.keep_worktrees)
    logs = _Streams(Client.logs)
    narrow_policy = _Calls(Client.narrow_policy)
    next_times = _Calls(Client.next_times)
    occurrences = _Calls(Client.occurrences)
    open_webhook = _Calls(Client.open_webhook)
    pause = _Calls(Client.pause)
    pause_controller = _Calls(Client.pause_controller)
    pause_job = _Calls(Client.pause_job)
    pause_schedule = _Calls(Client.pause_schedule)
    pause_workflow = _Calls(Client.pause_workflow)
    policy = _Calls(Client.policy)
    quarantined = _Calls(Client.quarantined)
    release_quarantine = _Calls(Client.release_quarantine)
    reload_settings = _Calls(Client.reload_settings)
    relocate_repository = _Calls(Client.relocate_repository)
    remove_controller = _Calls(Client.remove_controller)
    remove_repository = _Calls(Client.remove_repository)
    remove_schedule = _Calls(Client.remove_schedule)
    remove_worktrees = _Calls(Client.remove_worktrees)
    repositories = _Calls(Client.repositories)
    repository = _Calls(Client.repository)
    restore_worktree = _Calls(Client.restore_worktree)
    resume = _Calls(Client.resume)
    resume_controller = _Calls(Client.resume_controller)
    resume_job = _Calls(Client.resume_job)
    resume_schedule = _Calls(Client.resume_schedule)
    resume_workflow = _Calls(Client.resume_workflow)
    retry = _Calls(Client.retry)
    retry_workflow = _Calls(Client.retry_workflow)
    run_epic = _Calls(Client.run_epic)
    run_schedule = _Calls(Client.run_schedule)
    run_trusted_workflow = _Calls(Client.run_trusted_workflow)
    run_workflow = _Calls(Client.run_workflow)
    schedule = _Calls(Client.schedule)
    schedules = _Calls(Client.schedules)
    select = _Calls(Client.select)
    set_policy = _Calls(Client.set_policy)
    settings = _Calls(Client.settings)
    status = _Calls(Client.status)
    steer_all = _Calls(Client.steer_all)
    stop = _Calls(Client.stop)
    stop_epic = _Calls(Client.stop_epic)
    submit = _Calls(Client.submit)
    submit_all = _Calls(Client.submit_all)
    submit_template = _Calls(Client.submit_template)
    tell_controller = _Calls(Client.tell_controller)
    template = _Calls(Client.template)
    templates = _Calls(Client.templates)
    test_webhook = _Calls(Client.test_webhook)
    timeline = _Calls(Client.timeline)
    trust = _Calls(Client.trust)
    trust_repository = _Calls(Client.trust_repository)
    undrain = _Calls(Client.undrain)
    unhold = _Calls(Client.unhold)
    usage = _Calls(Client.usage)
    wait = _Calls(Client.wait)
    wait_epic = _Calls(Client.wait_epic)
    wait_workflow = _Calls(Client.wait_workflow)
    wake_controller = _Calls(Client.wake_controller)
    webhooks = _Calls(Client.webhooks)
    why = _Calls(Client.why)
    workflow = _Calls(Client.workflow)
    workflows = _Calls(Client.workflows)
    worktrees = _Calls(Client.worktrees)
