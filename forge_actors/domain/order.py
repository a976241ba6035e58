"""The order of one batch: every job after those of the batch that it names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence


def batch_order(
    jobs: Sequence[tuple[str | None, Sequence[str]]], prefixes: Sequence[str]
) -> list[int]:
    """Indices of the jobs, given as (name, names it runs after), so that each comes
    after the jobs it names; otherwise as they came. Names that are none of the batch's
    are left to the caller.

    Raises:
        InvalidInput: two jobs have one name, or a cycle, whose path is shown.
    """
    if len(jobs) == 1 and jobs[0][0] not in jobs[0][1]:
        return [0]  # most requests are for one job
    index_of: dict[str, int] = {}
    named = {name for _, after in jobs for name in after}
    for index, (name, _) in enumerate(jobs):
        if name is None:
            continue
        if name in index_of:
            if name in named:
                raise InvalidInput(
                    f"{prefixes[index]}name", f"{name!r} is the name of two jobs"
                )
            continue
        index_of[name] = index
    order: list[int] = []
    placed: set[int] = set()
    for start in range(len(jobs)):
        if start not in placed:
            _place(start, jobs, index_of, order, placed, prefixes)
    return order


def _place(
    start: int,
    jobs: Sequence[tuple[str | None, Sequence[str]]],
    index_of: dict[str, int],
    order: list[int],
    placed: set[int],
    prefixes: Sequence[str],
) -> None:
    # A stack of our own: a chain of ten thousand jobs is deeper than Python's.
    path: list[int] = [start]
    on_path = {start}
    unread = [iter(jobs[start][1])]
    while path:
        index = path[-1]
        names = (index_of.get(name) for name in unread[-1])
        ahead = next((i for i in names if i is not None and i not in placed), None)
        if ahead is None:
            path.pop()
            unread.pop()
            on_path.discard(index)
            placed.add(index)
            order.append(index)
        elif ahead in on_path:
            cycle = [*path[path.index(ahead) :], ahead]
            shown = " -> ".join(str(jobs[i][0]) for i in cycle)
            raise InvalidInput(f"{prefixes[index]}after", f"is a cycle: {shown}")
        else:
            path.append(ahead)
            unread.append(iter(jobs[ahead][1]))
            on_path.add(ahead)
