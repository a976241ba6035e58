"""Which nodes of a graph wait for each other in a circle."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


def circles(edges: Mapping[int, Sequence[int]]) -> tuple[tuple[int, ...], ...]:
    """The groups within which each node leads to each, one that leads to itself among
    them; in the order of the nodes. What an edge leads to outside is passed over.

    By Tarjan's way: each edge is looked at once, and nothing calls itself, however
    long a chain is.
    """
    place = {node: number for number, node in enumerate(edges)}
    groups = _Search(edges).groups
    found = [tuple(sorted(group, key=place.__getitem__)) for group in groups]
    return tuple(sorted(found, key=lambda group: place[group[0]]))


class _Search:
    def __init__(self, edges: Mapping[int, Sequence[int]]) -> None:
        self._edges = edges
        #: When each node was met, and the earliest one that it leads back to.
        self._met: dict[int, int] = {}
        self._back: dict[int, int] = {}
        #: Those that were met and are in no group yet.
        self._open: dict[int, None] = {}
        self.groups: list[list[int]] = []
        for root in edges:
            if root not in self._met:
                self._walk(root)

    def _walk(self, root: int) -> None:
        way = [(root, self._meet(root))]
        while way:
            node, rest = way[-1]
            deeper = self._step(node, rest)
            if deeper is not None:
                way.append((deeper, self._meet(deeper)))
                continue
            way.pop()
            if way:
                above = way[-1][0]
                self._back[above] = min(self._back[above], self._back[node])
            if self._back[node] == self._met[node]:
                self._gather(node)

    def _meet(self, node: int) -> Iterator[int]:
        self._met[node] = self._back[node] = len(self._met)
        self._open[node] = None
        return iter(self._edges[node])

    def _step(self, node: int, rest: Iterator[int]) -> int | None:
        """The next node that was not met yet."""
        for other in rest:
            if other not in self._edges:
                continue
            if other not in self._met:
                return other
            if other in self._open:
                self._back[node] = min(self._back[node], self._met[other])
        return None

    def _gather(self, first: int) -> None:
        group = []
        while first in self._open:
            last, _ = self._open.popitem()
            group.append(last)
        if len(group) > 1 or first in self._edges[first]:
            self.groups.append(group)
