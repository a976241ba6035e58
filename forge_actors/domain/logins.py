"""Login links: how a browser is let in to the pages of a service."""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct


class LoginLink(Struct, frozen=True):
    """A link that lets one browser in, once, within `expires_in` seconds."""

    url: str
    endpoint: str
    expires_in: int


class Logins(Protocol):
    """Makes login links."""

    async def login_link(self, place: str = "/") -> LoginLink:
        """A link that ends at `place`; TCP is opened for it where it is not yet.

        Raises:
            InvalidInput: that is no place here. Refused: TCP cannot be opened.
        """

    def log_out(self, page: str) -> bool:
        """Let a browser in no more, by the id of its session; whether it was."""
