"""Forge Actors: run the long jobs of many git repositories on one machine.

The rooms, from the inside out. An arrow says "may import".

    domain    values and decisions, pure: no clock, no files, no trio
    actors    one module an actor, its messages and its loop      -> domain
    edges     the outside, each piece behind a port of domain     -> domain
    runtime   wires the actors to the edges, starts and stops     -> actors, edges
    client    other programs speak to a running service           -> domain
    cli       the command line, one verb a file                   -> client, runtime
    testing   fakes and contract checks for users and tests       -> every room

Data goes one way: an entry point builds settings, the runtime builds the edges
and hands them to the actors as ports, the actors ask the domain what to do, and
the domain only answers.

The public names below are loaded on first use, so that a client command or the
node agent never pays for the runtime. What else is public is in modules of its own:

    forge_actors.kit        actors of your own, and a supervisor for them
    forge_actors.adapters   adapters of your own for agent programs
    forge_actors.client     the same verbs for other programs, over the socket
    forge_actors.testing    for tests of programs that use any of this

`design/api.md` tells of all of it, `design/versioning.md` what may change and when.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.capacity_view import CapacityView as CapacityView
    from forge_actors.domain.capacity_view import ProviderView as ProviderView
    from forge_actors.domain.capacity_view import TokenView as TokenView
    from forge_actors.domain.epic.runs import EpicRequest as EpicRequest
    from forge_actors.domain.epic.runs import EpicRunView as EpicRunView
    from forge_actors.domain.errors import ForgeError as ForgeError
    from forge_actors.domain.errors import InvalidInput as InvalidInput
    from forge_actors.domain.errors import LauncherDown as LauncherDown
    from forge_actors.domain.errors import NotFound as NotFound
    from forge_actors.domain.errors import Refused as Refused
    from forge_actors.domain.errors import StoreFailed as StoreFailed
    from forge_actors.domain.errors import Unavailable as Unavailable
    from forge_actors.domain.events import EventView as EventView
    from forge_actors.domain.jobs import JobError as JobError
    from forge_actors.domain.jobs import JobView as JobView
    from forge_actors.domain.repositories import RepositoryDetails as RepositoryDetails
    from forge_actors.domain.repositories import RepositoryView as RepositoryView
    from forge_actors.domain.requests import JobEdit as JobEdit
    from forge_actors.domain.requests import JobQuery as JobQuery
    from forge_actors.domain.requests import JobRequest as JobRequest
    from forge_actors.domain.schedule_views import NextTime as NextTime
    from forge_actors.domain.schedule_views import OccurrenceView as OccurrenceView
    from forge_actors.domain.schedule_views import ScheduleRequest as ScheduleRequest
    from forge_actors.domain.schedule_views import ScheduleView as ScheduleView
    from forge_actors.domain.settings import SettingChange as SettingChange
    from forge_actors.domain.settings import SettingView as SettingView
    from forge_actors.domain.workflow_views import WorkflowRequest as WorkflowRequest
    from forge_actors.domain.workflow_views import WorkflowView as WorkflowView
    from forge_actors.runtime.automation_handles import EpicHandle as EpicHandle
    from forge_actors.runtime.automation_handles import ScheduleHandle as ScheduleHandle
    from forge_actors.runtime.automation_handles import WorkflowHandle as WorkflowHandle
    from forge_actors.runtime.event_stream import EventStream as EventStream
    from forge_actors.runtime.event_stream import OutputStream as OutputStream
    from forge_actors.runtime.handles import Runtime as Runtime
    from forge_actors.runtime.job_handle import JobHandle as JobHandle
    from forge_actors.runtime.repository_handle import (
        RepositoryHandle as RepositoryHandle,
    )
    from forge_actors.runtime.runtime import open_runtime as open_runtime
    from forge_actors.runtime.settings import Settings as Settings

__version__ = "0.1.0"

_HOMES = {
    "CapacityView": "forge_actors.domain.capacity_view",
    "ProviderView": "forge_actors.domain.capacity_view",
    "TokenView": "forge_actors.domain.capacity_view",
    "EpicRequest": "forge_actors.domain.epic.runs",
    "EpicRunView": "forge_actors.domain.epic.runs",
    "ForgeError": "forge_actors.domain.errors",
    "InvalidInput": "forge_actors.domain.errors",
    "LauncherDown": "forge_actors.domain.errors",
    "NotFound": "forge_actors.domain.errors",
    "Refused": "forge_actors.domain.errors",
    "StoreFailed": "forge_actors.domain.errors",
    "Unavailable": "forge_actors.domain.errors",
    "EventView": "forge_actors.domain.events",
    "JobError": "forge_actors.domain.jobs",
    "JobView": "forge_actors.domain.jobs",
    "RepositoryDetails": "forge_actors.domain.repositories",
    "RepositoryView": "forge_actors.domain.repositories",
    "JobEdit": "forge_actors.domain.requests",
    "JobQuery": "forge_actors.domain.requests",
    "JobRequest": "forge_actors.domain.requests",
    "NextTime": "forge_actors.domain.schedule_views",
    "OccurrenceView": "forge_actors.domain.schedule_views",
    "ScheduleRequest": "forge_actors.domain.schedule_views",
    "ScheduleView": "forge_actors.domain.schedule_views",
    "SettingChange": "forge_actors.domain.settings",
    "SettingView": "forge_actors.domain.settings",
    "WorkflowRequest": "forge_actors.domain.workflow_views",
    "WorkflowView": "forge_actors.domain.workflow_views",
    "EpicHandle": "forge_actors.runtime.automation_handles",
    "ScheduleHandle": "forge_actors.runtime.automation_handles",
    "WorkflowHandle": "forge_actors.runtime.automation_handles",
    "EventStream": "forge_actors.runtime.event_stream",
    "OutputStream": "forge_actors.runtime.event_stream",
    "Runtime": "forge_actors.runtime.handles",
    "JobHandle": "forge_actors.runtime.job_handle",
    "RepositoryHandle": "forge_actors.runtime.repository_handle",
    "open_runtime": "forge_actors.runtime.runtime",
    "Settings": "forge_actors.runtime.settings",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605 - the table is the one list of public names


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
