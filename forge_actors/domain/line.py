"""The line: the offers of all repositories, and which of them is granted next.

Order: effective priority, then the repository that was served longest ago, then queue
time, job id, repository id. An offer that cannot have its tokens is passed over, until
it has waited `overtake_after`: then what it lacks is kept free from all that come after
it, and so is the last token of every scarce kind it needs. Otherwise one kind would be
taken while it waits for another, and it might never find all of them free at once.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES, WORKERS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.domain.capacity import Capacity, Offer
    from forge_actors.domain.priority import Rank

_Order = tuple[int, float, "Rank", str]

#: Entries of replaced offers that may lie in the heaps beside those that are current.
_SPARE_ENTRIES = 1000


class Line:
    """Who is next. Only the supervisor's task holds one.

    A repository's offers are replaced as a whole; heap entries of replaced offers carry
    an old version and are dropped when they surface. The effective priority is that of
    the moment of the offer: repositories offer again at every safety pass.
    """

    def __init__(self, last_dispatch: dict[str, float]) -> None:
        self.last_dispatch = last_dispatch
        self._offers: dict[str, tuple[int, Sequence[Offer]]] = {}
        self._version = 0
        self._heaps: dict[tuple[str, ...], list[tuple[_Order, int, Offer]]] = {}
        self._by_age: list[tuple[float, int, str, Offer]] = []
        #: Those that waited too long, for each set of tokens.
        self._starved: dict[tuple[str, ...], list[tuple[_Order, int, Offer]]] = {}
        self._current = 0
        self._entries = 0

    def __bool__(self) -> bool:
        return bool(self._offers)

    def offers(self) -> Iterator[Offer]:
        for _, offers in self._offers.values():
            yield from offers

    def put(self, repo: str, offers: Sequence[Offer], now: float) -> None:
        """Replace what a repository offers."""
        self.drop(repo)
        if not offers:
            return
        self._version += 1
        self._offers[repo] = (self._version, offers)
        self._current += len(offers)
        self._entries += len(offers)
        last = self.last_dispatch.get(repo, 0.0)
        for offer in offers:
            entry = (offer.order(last, now), self._version, offer)
            heappush(self._heaps.setdefault(offer.tokens, []), entry)
            by_age = (offer.queued_at, self._version, offer.job, offer)
            heappush(self._by_age, by_age)
        if self._entries > 2 * self._current + _SPARE_ENTRIES:
            self._sweep()

    def drop(self, repo: str) -> None:
        """Forget what a repository offers."""
        held = self._offers.pop(repo, None)
        if held is not None:
            self._current -= len(held[1])

    def reconsider(self) -> None:
        """Find anew who starves: what counts as too long has changed."""
        self._starved.clear()
        self._by_age = [
            (offer.queued_at, version, offer.job, offer)
            for version, offers in self._offers.values()
            for offer in offers
        ]
        heapify(self._by_age)

    def next(self, capacity: Capacity, now: float) -> Offer | None:
        """The first offer that can have all of its tokens now."""
        if capacity.used(WORKERS) >= capacity.limit(WORKERS):
            return None
        reserved = self.reserved(capacity, now)
        best: tuple[_Order, Offer] | None = None
        for order, offer in self._candidates(capacity, now):
            barred = reserved and any(
                self._order(holder, now) < order
                for kind, holder in reserved.items()
                if kind in offer.tokens or kind == ACTIVE_REPOSITORIES
            )
            if not barred and capacity.fits(offer.repo, offer.tokens):
                best = min(best or (order, offer), (order, offer), key=lambda e: e[0])
        return best[1] if best else None

    def next_ahead(self, capacity: Capacity, now: float) -> Offer | None:
        """The first of all offers, if all it lacks is a worker, and none is kept."""
        if self.reserved(capacity, now):
            return None
        first = min(
            self._candidates(capacity, now), key=lambda entry: entry[0], default=None
        )
        if first is None or first[1].tokens != (WORKERS,):
            return None
        return first[1] if capacity.may_be_active(first[1].repo) else None

    def reserved(self, capacity: Capacity, now: float) -> dict[str, Offer]:
        """Token kinds that are kept free, each for the first starving offer."""
        before = now - capacity.limits.overtake_after
        while self._by_age and self._by_age[0][0] <= before:
            _, version, _, offer = heappop(self._by_age)
            if self._is_current(version, offer):
                entry = (self._order(offer, now), version, offer)
                heappush(self._starved.setdefault(offer.tokens, []), entry)
        if not self._starved:
            return {}
        kinds: dict[str, Offer] = {}
        starving = [
            offer
            for offer in self._first_starved(capacity)
            if not capacity.fits(offer.repo, offer.tokens)
        ]
        for offer in sorted(starving, key=lambda o: self._order(o, now)):
            lacks = capacity.lacking(offer.repo, offer.tokens)
            if any(lack.limit == 0 for lack in lacks):
                continue  # closed, by pressure or the settings: nothing helps it now
            for lack in lacks:
                kinds.setdefault(lack.token, offer)
            for kind in offer.tokens:
                # A worker comes free with the last of the others, as all hold one.
                if kind != WORKERS and capacity.used(kind) + 1 >= capacity.limit(kind):
                    kinds.setdefault(kind, offer)
        return kinds

    def _first_starved(self, capacity: Capacity) -> Iterator[Offer]:
        """Of those with the same tokens that lack the same, the first.

        What is lacking depends on the tokens, and on whether the repository is active.
        """
        active = capacity.active_repositories
        for tokens in tuple(self._starved):
            heap = self._starved[tokens]
            passed: list[tuple[_Order, int, Offer]] = []
            while heap:
                _, version, offer = heap[0]
                if not self._is_current(version, offer):
                    heappop(heap)
                    continue
                yield offer
                if not capacity.repositories_full or offer.repo not in active:
                    break
                passed.append(heappop(heap))
            for entry in passed:
                heappush(heap, entry)
            if not heap:
                del self._starved[tokens]

    def precedes(self, one: Offer, other: Offer, now: float) -> bool:
        """Whether `one` comes before `other` in line."""
        return self._order(one, now) < self._order(other, now)

    def ahead_of(self, mine: Offer, kinds: set[str], now: float) -> int:
        """How many other repositories' offers come first and want one of the kinds."""
        place = self._order(mine, now)
        return sum(
            1
            for offer in self.offers()
            if offer.repo != mine.repo
            and kinds.intersection(offer.tokens)
            and self._order(offer, now) < place
        )

    def _order(self, offer: Offer, now: float) -> _Order:
        return offer.order(self.last_dispatch.get(offer.repo, 0.0), now)

    def _is_current(self, version: int, offer: Offer) -> bool:
        held = self._offers.get(offer.repo)
        return held is not None and held[0] == version

    def _sweep(self) -> None:
        """Drop the entries of replaced offers, which have become most of all."""
        self._by_age = [e for e in self._by_age if self._is_current(e[1], e[3])]
        heapify(self._by_age)
        for tokens, heap in tuple(self._heaps.items()):
            heap = [entry for entry in heap if self._is_current(entry[1], entry[2])]
            heapify(heap)
            self._heaps[tokens] = heap
        for tokens, heap in tuple(self._starved.items()):
            heap = [entry for entry in heap if self._is_current(entry[1], entry[2])]
            heapify(heap)
            self._starved[tokens] = heap
        self._entries = self._current

    def _candidates(
        self, capacity: Capacity, now: float
    ) -> Iterator[tuple[_Order, Offer]]:
        if capacity.repositories_full:
            for repo in capacity.active_repositories:
                for offer in self._offers.get(repo, (0, ()))[1]:
                    yield self._order(offer, now), offer
            return
        for tokens in tuple(self._heaps):
            heap = self._heaps[tokens]
            while heap and not self._is_current(heap[0][1], heap[0][2]):
                heappop(heap)
            if heap:
                yield heap[0][0], heap[0][2]
            else:
                del self._heaps[tokens]
