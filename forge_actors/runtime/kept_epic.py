"""A run of an EPIC that has not ended, as its runtime has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.epic.runs import with_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.runs import EpicRun
    from forge_actors.domain.epic.views import EpicView
    from forge_actors.runtime.epic_sites import JobSite


class KeptEpic:
    """Its scheduler changes from time to time; what is known of it stays."""

    def __init__(self, run: EpicRun) -> None:
        self.run = run
        self.over = trio.Event()
        self.view: Callable[[], EpicView | None] = lambda: None
        #: What its scheduler works in, while there is one.
        self.site: JobSite | None = None
        #: Somebody wants it to end although it has no scheduler now.
        self.stopped = trio.CancelScope()

    @property
    def jobs(self) -> dict[int, str]:
        """The last job of each issue that has had one."""
        seen = () if self.run.last is None else self.run.last.children
        before = {each.number: each.job for each in seen if each.job is not None}
        return before if self.site is None else {**before, **self.site.jobs}

    def look(self) -> None:
        """Keep what is seen of it now, for when its scheduler is gone."""
        view = self.view()
        if view is not None:
            seen = with_jobs(view, self.jobs)
            self.run = structs.replace(self.run, last=seen)
