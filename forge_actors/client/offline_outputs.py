"""What jobs handed on, of a home that nothing serves."""

from __future__ import annotations

from typing import Any

import msgspec

from forge_actors.client import offline
from forge_actors.domain.jobs import TERMINAL, JobSpec
from forge_actors.domain.launch import Receipt
from forge_actors.domain.outputs import shown_outputs

_QUERY = "SELECT spec, receipt FROM job WHERE id = ?"


def with_outputs(home: str, view: dict[str, Any]) -> dict[str, Any]:
    """The view of a job with the values that it handed on, if it declared some."""
    [(spec, receipt)] = offline.rows(home, _QUERY, [view["id"]])
    found = shown_outputs(
        msgspec.json.decode(spec, type=JobSpec),
        None if receipt is None else msgspec.json.decode(receipt, type=Receipt),
        ended=view["state"] in TERMINAL,
    )
    if found is None:
        return view
    return {**view, "outputs": found.values, "outputs_problem": found.problem}
