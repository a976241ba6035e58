"""Grants: the tokens of one job on their way through memory channels.

The supervisor's task alone counts tokens. It sends a grant with all that one job needs.
Holding it is the only right to launch; however the holder ends, the grant goes back.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Self

from msgspec import Struct

from forge_actors.domain.errors import MailboxClosed

if TYPE_CHECKING:
    from collections.abc import Callable


class Returned(Struct, frozen=True):
    """The tokens of a grant are free again."""

    grant: Grant


class Grant:
    """All the tokens of one job. Use as a context manager around the job's whole life.

    Invariant: the supervisor is told of its return at most once.
    """

    __slots__ = ("_back", "_passed", "id", "job", "repo", "returned", "tokens")

    def __init__(
        self,
        grant_id: str,
        repo: str,
        tokens: tuple[str, ...],
        back: Callable[[Returned], None],
    ) -> None:
        self.id = grant_id
        self.repo = repo
        self.tokens = tokens
        #: The job it is used for, once its repository has chosen one.
        self.job: str | None = None
        self.returned = False
        self._passed = False
        self._back = back

    def __enter__(self) -> Self:
        self._passed = False
        return self

    def __exit__(self, *exc: object) -> None:
        if not self._passed:
            self.give_back()

    def pass_on(self) -> None:
        """Somebody else gives it back: leaving this block no longer does."""
        self._passed = True

    def give_back(self) -> None:
        if self.returned:
            return
        self.returned = True
        # A supervisor that has ended took its counts with it.
        with suppress(MailboxClosed):
            self._back(Returned(self))
