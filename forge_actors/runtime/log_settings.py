"""Settings of what a service says of itself."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.sizes import parse_size

Format = Literal["console", "json"]
Level = Literal["debug", "info", "warning", "error"]

#: Bytes of the smallest file that is worth a beginning of its own.
LEAST_BYTES = 64 * 1024


class LogSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What is said, how, and how much of it is kept."""

    #: `json`: each line is an object; `console`: for people.
    format: Format = "console"
    level: Level = "info"
    #: Of `service.log`; then it begins anew, and the old one is `service.log.1`.
    max_bytes: Annotated[int, Meta(ge=0, le=1 << 50)] | str = "10M"
    #: How many old ones are kept.
    kept: Annotated[int, Meta(ge=0, le=9)] = 3

    @property
    def size(self) -> int:
        """Bytes.

        Raises:
            InvalidInput: it is no size, or too small.
        """
        size = parse_size(self.max_bytes, field="log.max_bytes")
        if size < LEAST_BYTES:
            raise InvalidInput("log.max_bytes", f"must not be less than {LEAST_BYTES}")
        return size
