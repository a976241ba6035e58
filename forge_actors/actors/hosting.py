"""What the controllers actor asks of hosts: once each, and later what they know."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.actors.controllers_messages import Answered
from forge_actors.domain.continuation import Around
from forge_actors.domain.controller_hosts import Continuation
from forge_actors.domain.controller_records import wake_saved
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.jobs import TERMINAL

if TYPE_CHECKING:
    from forge_actors.actors.controllers_messages import Context, Message
    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.controller_hosts import HostAnswer
    from forge_actors.domain.controllers import Controller, Wake
    from forge_actors.domain.ports import Saved

log = logging.getLogger(__name__)


class Hosting:
    """The part of the actor that speaks with them."""

    def __init__(self, context: Context, mailbox: Mailbox[Message]) -> None:
        self._context = context
        self._store = context.store
        self._mailbox = mailbox

    def around(self, controller: Controller, *, news: bool) -> Around:
        """What decides about it besides itself."""
        context, running, retained = self._context, None, True
        if controller.job is not None:
            state = self._store.job_known(controller.job)
            retained = state is not None
            if state is not None and state not in TERMINAL:
                running = controller.job
        try:
            host = context.host(controller.host)
            now = host.check(controller.binding, controller.job)
            bound = now == controller.binding
        except ForgeError:
            bound = False
        return Around(
            *(context.clock.wall(), context.seen(controller), retained, bound),
            *(running, context.closed(), news),
        )

    def resumes(self, controller: Controller) -> bool:
        """Whether a turn that has stalled can be gone on with."""
        try:
            return self._context.host(controller.host).resumes
        except ForgeError:
            return False

    async def dispatch(
        self, controller: Controller, wake: Wake, durable: Saved | None
    ) -> None:
        """Ask the host of a wake that is saved, once."""
        if durable is not None:
            await durable.wait()
        asked = structs.replace(wake, state="dispatching")
        change = wake_saved(controller, asked, self._context.clock.now())
        await self._store.save([change]).wait()
        continuation = Continuation(
            *(wake.id, controller.name, controller.repo, controller.binding),
            *(controller.job, self._context.asked(controller, wake), wake.origin),
        )
        answer: HostAnswer | None = None
        problem = "it was asked, and gave no answer"
        try:
            host = self._context.host(controller.host)
            answer = await host.resume(continuation)
        except Exception as error:  # it may be somebody else's code
            log.exception("the host of controller %s failed", controller.name)
            problem = f"{type(error).__name__}: {error}"
        self._mailbox.tell(Answered(controller.id, wake.id, answer, problem))

    async def find(self, controller: Controller, wake: Wake) -> None:
        """Ask the host what it knows of a wake that may have begun, and no more."""
        answer: HostAnswer | None = None
        problem = "the service ended while it was asked"
        try:
            host = self._context.host(controller.host)
            answer = await host.found(wake.id)
        except Exception as error:  # it may be somebody else's code
            log.exception("the host of controller %s failed", controller.name)
            problem = f"{problem}; {type(error).__name__}: {error}"
        self._mailbox.tell(Answered(controller.id, wake.id, answer, problem))
