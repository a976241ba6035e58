"""Deliberate bugs in how jobs wait at the agent for the end of others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.actors.tokens import Grant, Grants
from forge_actors.edges.node.agent.behind import Behind

if TYPE_CHECKING:
    import pytest

    from tests.simulation.mutations import Mutation


def the_agent_heeds_no_room(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Behind, "takes", lambda *_: False)


def what_is_ahead_is_told_of_before_it_has_tokens(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Grant, "once_filled", lambda *_: False)


def others_are_granted_what_is_ahead_waits_for(patch: pytest.MonkeyPatch) -> None:
    real = Grants.take_back

    def take_back(self: Any, grant: Any) -> None:
        self._fill_first = lambda: None
        real(self, grant)

    patch.setattr(Grants, "take_back", take_back)


def there_is_room_for_one_more(patch: pytest.MonkeyPatch) -> None:
    real = Grants.issue_ahead

    def issue_ahead(self: Any, offer: Any, now: float) -> Any:
        grant = real(self, offer, now)
        grant.room += 1
        return grant

    patch.setattr(Grants, "issue_ahead", issue_ahead)


OF_ROOMS: tuple[Mutation, ...] = (
    the_agent_heeds_no_room,
    what_is_ahead_is_told_of_before_it_has_tokens,
    others_are_granted_what_is_ahead_waits_for,
    there_is_room_for_one_more,
)
