"""The options among the arguments that a user adds to those of an agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def has_option(arguments: Sequence[str], *names: str) -> bool:
    """Whether one of these options is given, as `--name value` or `--name=value`."""
    return any(
        given == name or given.startswith(f"{name}=")
        for given in arguments
        for name in names
    )
