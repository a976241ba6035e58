"""Pages of lists: a part of one, and where the next part begins.

A place in a list is told by the item before it, so that what is added or removed
between two requests neither hides another item nor shows it twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from forge_actors.edges.gateway.parameters import number, text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from forge_actors.edges.gateway.query import Query

MAX_PAGE = 10_000
PAGED = (
    number("limit", "At most so many; all by default.", least=1, most=MAX_PAGE),
    text("after", "Only those behind this place: `next` of another page."),
)

T = TypeVar("T")


def page(
    items: Iterable[T], place: Callable[[T], str], query: Query
) -> tuple[list[T], str | None]:
    """The items that a query asks for, in the order of their places; the last place,
    if more follow."""
    after = query.one("after")
    limit = query.number("limit", 0, least=1, most=MAX_PAGE)
    found = sorted(items, key=place)
    if after is not None:
        found = [item for item in found if place(item) > after]
    if not 0 < limit < len(found):
        return found, None
    return found[:limit], place(found[limit - 1])
