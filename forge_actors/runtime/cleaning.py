"""The clean-up of a home that nobody serves: owned as long as it lasts."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.actors import maintenance
from forge_actors.actors.maintenance_context import Context
from forge_actors.actors.maintenance_messages import Clean, Message, Stop
from forge_actors.domain.errors import NotFound
from forge_actors.domain.maintenance import MAX_NAMED, CleanOrder
from forge_actors.domain.ownership import claim_of
from forge_actors.edges.cleanup.process import CleanUpProgram
from forge_actors.edges.machine import Clock
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.cleanup.program import plan
from forge_actors.runtime.homes import STORE_FILE, refuse_shared
from forge_actors.runtime.in_force import resolve
from forge_actors.runtime.ownership import own_home, taken_over
from forge_actors.runtime.sources import SETTINGS_FILE

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.actors.mailbox import Mailbox
    from forge_actors.domain.cleaning import CleanRequest
    from forge_actors.domain.maintenance import CleanResult
    from forge_actors.domain.ownership import Owner
    from forge_actors.edges.sqlite.store import SqliteStore
    from forge_actors.runtime.settings import Settings


def clean_home(home: Path, request: CleanRequest) -> CleanResult:
    """One run in a home; a dry run takes nothing and touches nothing.

    Raises:
        NotFound: there is no store. Refused: another process owns the home.
        InvalidInput: its settings are not valid. StoreFailed: it cannot be saved in.
    """
    home = home.resolve()
    if not (home / STORE_FILE).is_file():
        raise NotFound(f"{home} is no home of a service")
    refuse_shared(home)
    settings = resolve(home / SETTINGS_FILE, None).settings
    request = structs.replace(request, home=str(home), now=time())
    if request.dry_run:
        policy = settings.cleaning
        return plan(CleanOrder(request, policy.limits, rules=policy.rules), MAX_NAMED)
    with own_home(home) as me:

        async def run() -> CleanResult:
            limits = settings.repository_limits()
            clock = Clock()
            opening = open_store(
                home / STORE_FILE,
                repository_workers=limits.workers,
                overtake_after=limits.overtake_after,
                clock=clock,
            )
            async with taken_over(opening, me, clock.now()) as (store, _):
                return await _clean(home, settings, store, clock, request)

        return trio.run(run)


async def _clean(
    home: Path,
    settings: Settings,
    store: SqliteStore,
    clock: Clock,
    request: CleanRequest,
) -> CleanResult:
    owner: Owner | None = store.owner
    assert owner is not None, "it was taken over"
    # By itself it runs nothing here.
    policy = structs.replace(settings.cleaning, enabled=False)
    context = Context(
        home=str(home),
        store=store,
        clock=clock,
        clean_up=CleanUpProgram(),
        policy=lambda: policy,
        claim=claim_of(owner),
        is_busy=lambda: False,
    )
    async with trio.open_nursery() as nursery:
        mailbox: Mailbox[Message]
        mailbox = await nursery.start(maintenance.run, context)
        result: CleanResult = await mailbox.ask(lambda reply: Clean(request, reply))
        mailbox.tell(Stop())
    return result
