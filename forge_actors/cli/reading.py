"""Reading from the service, or from the store of a home that nothing serves."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, TypeVar

from forge_actors.cli.verb import note
from forge_actors.client.errors import NoService
from forge_actors.client.home import has_store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.client.sync import Service

T = TypeVar("T")


def read(service: Service, served: Callable[[], T], kept: Callable[[], T]) -> T:
    """What the service answers; if none runs, what is kept, and a note that says so.

    `kept` imports what it needs: reading a store costs imports that the client of a
    service must not pay for.
    """
    try:
        return served()
    except NoService as error:
        if not has_store(service.home):
            raise
        reason = error.reason
    found = kept()
    note(f"{reason}; this is what its store holds")
    return found


def begun(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same pieces, once the first has come: a refusal is told now, not later."""
    first = next(pieces, None)
    return chain([] if first is None else [first], pieces)
