"""What was read before, so that what did not change is not sent again."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

from msgspec import Struct

T = TypeVar("T")

#: Issues that are remembered, over all answers.
MAX_KEPT = 20_000


class Known(Struct, Generic[T], frozen=True):
    """One answer, as it was understood."""

    etag: str
    value: T
    following: str | None
    size: int


class Answers(Generic[T]):
    """By their URL; those that were used longest ago go first."""

    def __init__(self, most: int = MAX_KEPT) -> None:
        self._most = most
        self._kept: OrderedDict[str, Known[T]] = OrderedDict()
        self._size = 0

    def get(self, url: str) -> Known[T] | None:
        known = self._kept.get(url)
        if known is not None:
            self._kept.move_to_end(url)
        return known

    def put(self, url: str, known: Known[T]) -> None:
        self.drop(url)
        self._kept[url] = known
        self._size += known.size
        while self._size > self._most and len(self._kept) > 1:
            _, oldest = self._kept.popitem(last=False)
            self._size -= oldest.size

    def drop(self, url: str) -> None:
        before = self._kept.pop(url, None)
        if before is not None:
            self._size -= before.size

    def clear(self) -> None:
        self._kept.clear()
        self._size = 0
