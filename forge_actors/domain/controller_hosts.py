"""The port of controller hosts: what has a session go on, each in a way of its own.

A host is asked once for each occurrence. What it answers is kept; where no answer came,
it is only asked what it knows of that occurrence, and never to do it again.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from msgspec import Struct


class Continuation(Struct, frozen=True):
    """What a session is woken for."""

    #: The occurrence; the host may use it as the id of what it begins.
    wake: str
    controller: str
    repo: str
    binding: dict[str, Any]
    #: The last job of the session, if it has one of ours.
    job: str | None
    #: What the agent is asked.
    prompt: str
    #: What marks a job of it.
    origin: str


class HostAnswer(Struct, frozen=True):
    """Accepted with the name of what has begun; or nothing has, and why."""

    answer: Literal["accepted", "wait", "wait_for_user", "rejected"]
    reason: str = ""
    dispatch: str | None = None
    #: The same, where it is a job of ours.
    job: str | None = None


class ControllerHost(Protocol):
    """What an entry point of the group `forge_actors.controller_hosts` makes."""

    @property
    def name(self) -> str: ...

    @property
    def resumes(self) -> bool:
        """Whether it can have a session go on that ended its turn without a word."""

    def check(self, binding: dict[str, Any], job: str | None) -> dict[str, Any]:
        """The same binding in the one form in which it is kept. It is asked again
        before each wake: another answer is another binding.

        Raises:
            InvalidInput: it is none of this host. Refused: what it leads to is gone.
        """

    async def resume(self, continuation: Continuation) -> HostAnswer:
        """Have the session go on. An exception means that it is not known whether it
        does."""

    async def found(self, wake: str) -> HostAnswer | None:
        """What this occurrence has begun, if that can be told; nothing is begun."""
