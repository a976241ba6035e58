"""Settings of the interface to other programs: how many clients it has at once."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput

Places = Annotated[int, Meta(ge=1, le=10_000)]


class GatewaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How many clients the service has at once; further ones are told to come again."""

    #: Requests held open until something happens, as `wait` and `logs -f` ask for.
    held_requests: Places = 256
    #: Connections in all; those beyond `held_requests` are left for short requests.
    connections: Places = 384
    #: Readers of `GET /v1/events` as a stream, beside all those.
    streams: Places = 2000

    def check(self) -> None:
        """Check what no single field tells.

        Raises:
            InvalidInput: something does not fit together.
        """
        if self.connections <= self.held_requests:
            raise InvalidInput(
                "gateway.connections",
                "must be more than gateway.held_requests, so that a place is left",
            )
