"""The watch of issues in a runtime, and which repository a schedule means by them."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import issue_watches, issue_watches_messages
from forge_actors.actors.schedules_messages import Find
from forge_actors.domain.causes import Issues
from forge_actors.domain.errors import InvalidInput, MailboxClosed, Refused
from forge_actors.domain.github.places import remote_place
from forge_actors.domain.triggers import On
from forge_actors.edges.git.remotes import origin_url
from forge_actors.runtime.github import NOT_HERE, is_here

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.actors.issue_watches_messages import Message
    from forge_actors.actors.mailbox import Mailbox, Reply
    from forge_actors.actors.schedules_messages import Signalled
    from forge_actors.domain.ports import Clock
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.schedules import Definition, Schedule
    from forge_actors.runtime.github import GitHubAccess

    Ask = Callable[
        [Callable[[Reply[Schedule | None]], Find]], Awaitable[Schedule | None]
    ]


class IssueWatching:
    """Implements `Source` for issues. `run` is its task."""

    def __init__(self, clock: Clock, github: GitHubAccess) -> None:
        self._clock = clock
        self._github = github
        self.mailbox: Mailbox[Message] | None = None

    async def run(
        self,
        ask: Ask,
        tell: Callable[[Signalled], object],
        *,
        task_status: trio.TaskStatus[Mailbox[Message]],
    ) -> None:
        """Watch until cancelled; `ask` and `tell` are for the schedules."""

        async def schedule(key: str) -> Schedule | None:
            return await ask(partial(Find, key))

        context = issue_watches.Context(
            clock=self._clock,
            github=self._github.reader,
            schedule=schedule,
            tell=tell,
            at_once=lambda: self._github.settings().issues_at_once,
        )
        try:
            await issue_watches.run(context, task_status=task_status)
        finally:
            self.mailbox = None

    def follow(self, schedule: Schedule) -> None:
        """See the port."""
        trigger = schedule.definition.trigger
        if isinstance(trigger, On) and isinstance(trigger.cause, Issues):
            self._tell(issue_watches_messages.Follow(schedule))
        else:
            self.leave(schedule.id)  # it may have waited for issues before

    def leave(self, schedule: str) -> None:
        """See the port."""
        self._tell(issue_watches_messages.Leave(schedule))

    def _tell(self, message: Message) -> None:
        if self.mailbox is not None:
            with suppress(MailboxClosed):  # it begins anew from what is saved
                self.mailbox.tell(message)


async def with_its_place(definition: Definition, repository: Repository) -> Definition:
    """The same, the repository whose issues it waits for named.

    Raises:
        InvalidInput: there is none. Refused: nothing here can read issues.
    """
    trigger = definition.trigger
    if not isinstance(trigger, On) or not isinstance(trigger.cause, Issues):
        return definition
    if not is_here():
        raise Refused(NOT_HERE)
    if trigger.cause.place is not None:
        return definition
    url = await origin_url(repository)
    place = None if url is None else remote_place(url)
    if place is None:
        raise InvalidInput(
            "on",
            f"origin of {repository.name} is no repository on GitHub; name the one that"
            " is meant: issues:OWNER/NAME",
        )
    cause = structs.replace(trigger.cause, place=place)
    return structs.replace(definition, trigger=structs.replace(trigger, cause=cause))
