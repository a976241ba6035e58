"""What a caller can ask of a runtime about what jobs do to the outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView


class EffectControl(Protocol):
    """The part of `Control` that decides about jobs that wait for a person."""

    async def approve(
        self, selector: str, *, how: str = "program", caller: str | None = None
    ) -> JobView:
        """Let a job go on that asks something, without words; or allow what it would
        do to the outside.

        That is saved with who did it and `how`. `caller` is the job or the agent
        that asks for this, if it is no person.

        Raises:
            Refused: it asks for nothing; or a job would allow it effects.
        """

    async def deny(
        self, selector: str, reason: str | None = None, *, caller: str | None = None
    ) -> JobView:
        """End a job that waits for a person: it has failed."""

    async def check_effect(self, job: str, effect: str) -> None:
        """Whether a job may do this to the outside.

        Raises:
            Refused: nobody has allowed it.
        """
