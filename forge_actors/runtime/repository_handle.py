"""What an embedding program holds of a repository that its runtime knows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobQuery, JobRequest, convert
from forge_actors.runtime.job_handle import JobHandle

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.repositories import RepositoryDetails, RepositoryView
    from forge_actors.runtime.control import RuntimeControl


class RepositoryHandle:
    """A repository that is registered. `id` is its own for ever; the rest is as it was
    when it was found, see `show`.

    Raises:
        NotFound: from every method, once it was removed.
        StoreFailed: from those that change something, if that could not be saved.
    """

    def __init__(self, control: RuntimeControl, view: RepositoryView) -> None:
        self._control = control
        self.id = view.id
        self.name = view.name
        self.path = view.path
        self.enabled = view.enabled
        #: What was noticed when it was found, such as that it was moved.
        self.note = view.note

    async def show(self) -> RepositoryDetails:
        """The repository as it is now, with its status and its jobs in numbers."""
        return await self._control.repository(self.id)

    async def submit(self, argv: Sequence[str], **options: Any) -> JobHandle:
        """Accept one job here; as `Runtime.submit`."""
        return await submit(self._control, self.id, argv, options)

    async def jobs(self, **query: Any) -> list[JobView]:
        """Its jobs, newest first; `query` has the other fields of `JobQuery`."""
        return await self._control.jobs(convert({"repo": [self.id], **query}, JobQuery))

    async def enable(self) -> RepositoryView:
        """Let its jobs start again."""
        return await self._control.enable_repository(self.id, enabled=True)

    async def disable(self) -> RepositoryView:
        """Start nothing new here; what runs goes on."""
        return await self._control.enable_repository(self.id, enabled=False)

    async def pause(self, *, jobs: bool = False) -> None:
        """Start nothing more here until `resume`; with `jobs` suspend what runs."""
        await self._control.pause(f"repo:{self.id}", jobs=jobs)

    async def resume(self) -> None:
        """End that pause, and let go on what it suspended."""
        await self._control.resume(f"repo:{self.id}")

    async def relocate(self, path: str | Path) -> RepositoryView:
        """Have it where somebody moved it, and its jobs with it.

        Raises:
            Refused: that is another repository, or a copy.
        """
        return await self._control.relocate_repository(self.id, str(path))

    async def remove(self, *, cancel: bool = False) -> RepositoryView:
        """Know it no more. Its files are left alone.

        Raises:
            Refused: it has jobs that have not ended, and they are not to be cancelled.
        """
        return await self._control.remove_repository(self.id, cancel=cancel)


async def submit(
    control: RuntimeControl, repo: str, argv: Sequence[str], options: dict[str, Any]
) -> JobHandle:
    """Accept one job.

    Raises:
        InvalidInput: an option is not known or not valid.
    """
    if isinstance(argv, str | bytes):
        raise InvalidInput("argv", "is a list of arguments, not one text")
    table = {"origin": "embedded", **options, "repo": repo, "argv": list(argv)}
    [accepted] = await control.submit([convert(table, JobRequest)])
    return JobHandle(control, accepted.id)
