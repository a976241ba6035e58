"""A client that submits while the service comes and goes, and repeats what it must."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from forge_actors.client import sync
from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, Refused

if TYPE_CHECKING:
    import random
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.chaos.plans import Place, Plan

#: Jobs of one submission.
MOST_AT_ONCE = 8
#: Seconds until what got no answer is sent again.
AGAIN = 0.1


class Submitter(threading.Thread):
    """Submits the plans in their order, as far as it is told to."""

    def __init__(
        self, home: Path, place: Place, plans: Sequence[Plan], rng: random.Random
    ) -> None:
        super().__init__(name="submitter", daemon=True)
        #: The id of each plan whose submission was answered, by its name.
        self.ids: dict[str, str] = {}
        #: Submissions that were sent again because there was no answer.
        self.repeated = 0
        #: Jobs that were there already when they were sent again.
        self.existing = 0
        self.refusals: list[str] = []
        #: Set while an answer is waited for.
        self.sending = threading.Event()
        self._home = home
        self._place = place
        self._plans = plans
        self._rng = rng
        self._allowed = 0
        self._changed = threading.Condition()
        self._given_up = False

    def allow(self, count: int) -> None:
        """Let it submit up to so many jobs in all."""
        with self._changed:
            self._allowed = max(self._allowed, min(count, len(self._plans)))
            self._changed.notify()

    def give_up(self) -> None:
        with self._changed:
            self._given_up = True
            self._changed.notify()

    def run(self) -> None:
        begin = 0
        while begin < len(self._plans):
            allowed = self._more_than(begin)
            if allowed is None:
                return
            end = min(begin + self._rng.randint(1, MOST_AT_ONCE), allowed)
            self._submit(self._plans[begin:end])
            begin = end

    def _more_than(self, done: int) -> int | None:
        """How many it may submit, once these are more; None if it is given up."""
        with self._changed:
            self._changed.wait_for(lambda: self._given_up or self._allowed > done)
            return None if self._given_up else self._allowed

    def _submit(self, plans: Sequence[Plan]) -> None:
        # Made once: the same request id with another content would be refused.
        jobs = [
            self._place.request(plan, [self.ids.get(one, one) for one in plan.after])
            for plan in plans
        ]
        answer = self._until_answered({"jobs": jobs})
        if answer is None:
            return
        for plan, accepted in zip(plans, answer["jobs"], strict=True):
            self.ids[plan.name] = accepted["id"]
            self.existing += bool(accepted["existing"])

    def _until_answered(self, body: dict[str, Any]) -> Any:
        """What the service answers; None once it refuses."""
        service = sync.Service(str(self._home))
        while True:
            self.sending.set()
            try:
                return service.post("jobs", body=body)
            except (InvalidInput, NotFound, Refused) as error:
                self.refusals.append(f"a submission was refused: {error}")
                return None
            except ForgeError:
                self.repeated += 1
            finally:
                self.sending.clear()
            with self._changed:
                if self._changed.wait_for(lambda: self._given_up, AGAIN):
                    return None
