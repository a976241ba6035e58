"""What an embedding program holds of a job that it has given to its runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from forge_actors.domain.requests import JobEdit, convert
from forge_actors.runtime.event_stream import EventStream, OutputStream

if TYPE_CHECKING:
    from forge_actors.domain.jobs import JobView
    from forge_actors.runtime.control import RuntimeControl

#: Bytes of output that are held at once.
MAX_OUTPUT = 16 * 1024 * 1024


class JobHandle:
    """A job that was accepted by this runtime. It is named by its `id`.

    Raises:
        NotFound: from every method, once retention has removed it.
        Refused: from those that change it, if its state does not allow that.
        StoreFailed: from those that change it, if that could not be saved.
    """

    def __init__(self, control: RuntimeControl, job_id: str) -> None:
        self._control = control
        self.id = job_id

    async def wait(self) -> JobView:
        """Wait until the job has ended; how it ended is in the view."""
        [view] = await self._control.wait([self.id])
        return view

    async def show(self) -> JobView:
        """The job as it is now."""
        return await self._control.job(self.id)

    async def why(self) -> str:
        """Why the job is where it is, in a sentence."""
        return (await self._control.why(self.id)).sentence

    def events(self, after: int = 0) -> EventStream:
        """Its events, from the first or after the one with the number `after`, to the
        one with which it has ended."""
        return EventStream(self._control, after, job=self.id)

    def output(
        self,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        attempt: int | None = None,
    ) -> OutputStream:
        """What it prints, piece by piece as it comes, until its attempt is over: the
        last one, unless another is named."""
        return OutputStream(self._control, self.id, stream, attempt)

    async def read(
        self,
        stream: Literal["stdout", "stderr"] = "stdout",
        *,
        attempt: int | None = None,
    ) -> bytes:
        """All that it prints, once its attempt is over; the last `MAX_OUTPUT` of it."""
        whole = bytearray()
        async for piece in self.output(stream, attempt=attempt):
            whole += piece
            del whole[:-MAX_OUTPUT]
        return bytes(whole)

    async def cancel(self, *, grace: float | None = None) -> JobView:
        """End the job; one that runs is only asked to stop when this returns."""
        return await self._control.cancel(self.id, grace=grace)

    async def hold(self) -> JobView:
        """Keep it from starting while it waits, until `unhold`."""
        return await self._control.hold(self.id)

    async def unhold(self) -> JobView:
        """Let it start again."""
        return await self._control.unhold(self.id)

    async def pause(self) -> JobView:
        """Suspend it with its whole tree while it runs; hold it while it waits."""
        return await self._control.pause_job(self.id)

    async def resume(self) -> JobView:
        """Let it go on after `pause`."""
        return await self._control.resume_job(self.id)

    async def edit(self, **fields: Any) -> JobView:
        """Change fields of `JobEdit` while it waits, all of them or none.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        return await self._control.edit(self.id, convert(fields, JobEdit))

    async def retry(self, *, resume: bool = False) -> JobHandle:
        """The same once more, as a new job; with `resume` in its agent's session.

        Raises:
            Refused: it has not ended, or has no session.
        """
        [made] = await self._control.retry([self.id], origin="embedded", resume=resume)
        return JobHandle(self._control, made.id)

    async def go_on(self, prompt: str) -> JobHandle:
        """Ask its agent for more, as a new job in the same session and worktree.

        Raises:
            Refused: it has not ended, has no session, or another job goes on with it.
        """
        made = await self._control.continue_job(self.id, prompt, origin="embedded")
        return JobHandle(self._control, made.id)

    async def answer(self, text: str) -> JobView:
        """Let it go on in its session, if it asks something, with this as its input."""
        return await self._control.answer(self.id, text)
