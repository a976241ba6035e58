"""What an agent is asked when it is woken."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.domain.controllers import By, Controller, Wake

_BY: dict[By, str] = {
    "schedule": "a schedule has come",
    "person": "somebody asked for it",
    "agent": "you asked to go on at once",
    "recovery": "your last turn ended without saying how it goes on",
}
ASKED = """\
{prompt}

(You are woken to go on with the work of the controller {name}, as {by}. This is turn
{round} of {rounds} until a person looks. Before you end your turn say how it goes on:

  forge-actors controller tell continue_immediately --note "what is next"
  forge-actors controller tell wait --note "what you wait for"
  forge-actors controller tell wait_for_user --note "what a person has to decide"
  forge-actors controller tell goal_complete --note "what was reached"

With --state TEXT say in a few words where the work stands: the same words again count
as no progress.)
"""


def asked(controller: Controller, wake: Wake) -> str:
    return ASKED.format(
        prompt=controller.prompt.rstrip(),
        name=controller.name,
        by=_BY[wake.by],
        round=controller.rounds + 1,
        rounds=controller.limits.rounds,
    )
