"""What the store of a home that nothing serves says of its policy."""

from __future__ import annotations

from typing import Any

from forge_actors.client import offline
from forge_actors.domain.policies import Policy, PolicyView, describe

_KNOWN = "SELECT 1 FROM sqlite_master WHERE name = 'policy'"
_POLICY = "SELECT mode, work, reason, since, until, revision FROM policy"


def policy(home: str) -> dict[str, Any]:
    """What a `GET /v1/policy` would say; one whose time is over ends at a start."""
    rows = offline.rows(home, _POLICY) if offline.rows(home, _KNOWN) else []
    known = Policy(*rows[0]) if rows else Policy()
    view = PolicyView(
        known.mode,
        known.work,
        known.reason,
        offline.moment(known.since if known.revision else None),
        offline.moment(known.until),
        known.revision,
        "" if known.mode == "normal" else describe(known),
    )
    return {name: getattr(view, name) for name in view.__struct_fields__}
