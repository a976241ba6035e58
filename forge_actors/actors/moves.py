"""Moves: what one batch of messages has changed, saved together.

An exit and the dispatch it makes possible, or a start and the end right after it, are
then one move of the store, and the order of the changes is the order of the messages.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.ports import Store


class Moves:
    """Collects changes until `save`. Only its actor's task holds one."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changes: list[Change] = []
        self._thens: list[Callable[[], object]] = []
        self._urgent = False

    def add(
        self,
        changes: Sequence[Change],
        *,
        then: Callable[[], object] | None = None,
        lazy: bool = False,
    ) -> None:
        """Save these with the rest; `then` is called when they are durable.

        Without any changes nothing happens. `lazy` ones start no commit of their own.
        """
        if not changes:
            return
        self._changes += changes
        self._urgent = self._urgent or not lazy
        if then is not None:
            self._thens.append(then)

    def save(self) -> None:
        """Hand what has come together to the store, as one move."""
        if not self._changes:
            return
        changes, thens, urgent = self._changes, self._thens, self._urgent
        self._changes, self._thens, self._urgent = [], [], False
        # Nearly always there is one, and it needs nobody who calls it.
        then = thens[0] if len(thens) == 1 else partial(_call_all, thens)
        self._store.save(changes, then=then, lazy=not urgent)


def _call_all(thens: list[Callable[[], object]]) -> None:
    for then in thens:
        then()
