"""What the store of a home that nothing serves says of the effects of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from forge_actors.domain.effect_views import effects_view
from forge_actors.domain.effects import Authority
from forge_actors.domain.launch import Receipt

if TYPE_CHECKING:
    from collections.abc import Callable


def effects(
    spec: dict[str, Any],
    job: str,
    receipt: dict[str, Any],
    moment: Callable[[float], str | None],
) -> dict[str, Any] | None:
    """As `show` has it; None: a person asked for the job, and it says nothing."""
    if spec.get("authority") is None:
        return None
    authority = msgspec.convert(spec["authority"], Authority)
    end = msgspec.convert(receipt, Receipt) if receipt else None
    shown: dict[str, Any] = msgspec.to_builtins(
        effects_view(authority, job, end, lambda at: str(moment(at)))
    )
    return shown
