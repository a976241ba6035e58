"""The ends: who is to be told when a job has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import State

    Notify = Callable[[State], None]


class Ends:
    """Those who wait for the end of a job that has not ended yet."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[Notify]] = {}
        #: Told of each end in a repository.
        self._heard: dict[str, Callable[[], object]] = {}
        #: Told of the repository of every job that ends.
        self.anywhere: Callable[[str | None], object] = lambda _: None

    def add(self, job: str, notify: Notify) -> None:
        self._waiting.setdefault(job, []).append(notify)

    def forget(self, job: str, notify: Notify) -> None:
        """Whoever asked has left."""
        waiting = self._waiting.get(job, [])
        if notify in waiting:
            waiting.remove(notify)
        if not waiting:
            self._waiting.pop(job, None)

    def hear(self, repo: str, notify: Callable[[], object] | None) -> None:
        """Tell of each end in this repository; None: no more."""
        if notify is None:
            self._heard.pop(repo, None)
        else:
            self._heard[repo] = notify

    def tell(self, job: str, state: State, repo: str | None) -> None:
        """The end of the job is durable."""
        for notify in self._waiting.pop(job, ()):
            notify(state)
        if repo in self._heard:
            self._heard[repo]()
        self.anywhere(repo)
