"""What a job waits for: the repository's word and the supervisor's, together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.capacity import Lack
from forge_actors.domain.waiting import describe_lack

if TYPE_CHECKING:
    from forge_actors.actors.repository import Waits
    from forge_actors.actors.supervisor import Survey


def with_tokens(waits: Waits, survey: Survey) -> Waits:
    """The same, with the first token that is lacking; `why` knows more."""
    if waits.offer is None or waits.waiting is None:
        return waits
    if waits.waiting.resource is not None:
        return waits
    for kind in waits.offer.tokens:
        use = survey.tokens.get(kind)
        if use is not None and use.used >= use.limit:
            detail = describe_lack(Lack(kind, use.used, use.limit, use.jobs))
            waiting = structs.replace(
                waits.waiting,
                detail=detail,
                resource=kind,
                used=use.used,
                limit=use.limit,
                holders=use.jobs,
            )
            return structs.replace(waits, waiting=waiting)
    return waits
