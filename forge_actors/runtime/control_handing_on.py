"""What can be asked of the values that jobs hand on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import MsgspecError, structs

from forge_actors.domain.jobs import TERMINAL
from forge_actors.domain.outputs import shown_outputs
from forge_actors.edges.sqlite.rows import spec_from
from forge_actors.runtime.control_jobs import JobControl
from forge_actors.runtime.views import receipt_of

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView


class HandingOnControl(JobControl):
    """The part of the port `Control` that is about what jobs hand on."""

    async def job(self, selector: str) -> JobView:
        view = await super().job(selector)
        row = self._row(view.id)
        try:
            spec = spec_from((row[5],))
            receipt = receipt_of(row) if spec.outputs else None
        except (MsgspecError, RecursionError):
            return view  # it says so already
        found = shown_outputs(spec, receipt, ended=view.state in TERMINAL)
        if found is None:
            return view
        values, problem = found
        return structs.replace(view, outputs=values, outputs_problem=problem)
