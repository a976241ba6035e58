"""The line: the offers of all repositories, and which of them is granted next.

Order: effective priority, then the repository that was served longest ago, then queue
time, job id, repository id. An offer that cannot have its tokens is passed over, until
it has waited `overtake_after`: then every kind it lacks is kept free for it.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.domain.capacity import Capacity, Offer
    from forge_actors.domain.priority import Rank

_Order = tuple[int, float, "Rank", str]


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
        self._starved: dict[tuple[str, tuple[str, ...]], Offer] = {}

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
        last = self.last_dispatch.get(repo, 0.0)
        for offer in offers:
            entry = (offer.order(last, now), self._version, offer)
            heappush(self._heaps.setdefault(offer.tokens, []), entry)
            by_age = (offer.queued_at, self._version, offer.job, offer)
            heappush(self._by_age, by_age)

    def drop(self, repo: str) -> None:
        """Forget what a repository offers."""
        held = self._offers.pop(repo, None)
        if held is not None:
            for offer in held[1]:
                self._starved.pop((repo, offer.tokens), None)

    def next(self, capacity: Capacity, now: float) -> Offer | None:
        """The first offer that can have all of its tokens now."""
        reserved = self.reserved(capacity, now)
        best: tuple[_Order, Offer] | None = None
        for order, offer in self._candidates(capacity, now):
            barred = any(
                holder is not offer
                for kind, holder in reserved.items()
                if kind in offer.tokens or kind == ACTIVE_REPOSITORIES
            )
            if not barred and capacity.fits(offer.repo, offer.tokens):
                best = min(best or (order, offer), (order, offer), key=lambda e: e[0])
        return best[1] if best else None

    def reserved(self, capacity: Capacity, now: float) -> dict[str, Offer]:
        """Token kinds that are kept free, each for the first offer starving for it."""
        before = now - capacity.limits.overtake_after
        while self._by_age and self._by_age[0][0] <= before:
            _, version, _, offer = heappop(self._by_age)
            if self._is_current(version, offer):
                self._starved[offer.repo, offer.tokens] = offer
        kinds: dict[str, Offer] = {}
        for offer in sorted(self._starved.values(), key=lambda o: self._order(o, now)):
            for lack in capacity.lacking(offer.repo, offer.tokens):
                kinds.setdefault(lack.token, offer)
        return kinds

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
