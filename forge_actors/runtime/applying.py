"""Applying: bringing the branch of a job into a checkout, by a job of its own.

That job has the claims of the checkout, so no other one is there meanwhile, and like
every other job it goes on when the service is killed.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any, Protocol

import trio

from forge_actors.domain.changes import Noted
from forge_actors.domain.claims import first_conflict, parse_claim
from forge_actors.domain.errors import Refused
from forge_actors.domain.events import Event
from forge_actors.domain.isolation import own_worktree
from forge_actors.domain.jobs import RESERVED, TERMINAL
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.results import Applied
from forge_actors.edges.git import integrating

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.jobs import JobView
    from forge_actors.domain.requests import Accepted, LogChunk
    from forge_actors.domain.results import ApplyMode
    from forge_actors.edges.git.changes import Place
    from forge_actors.edges.sqlite.store import SqliteStore

#: Seconds in which the job has to come into line, and in which it has to be done.
QUEUE_SECONDS = 60
DONE_SECONDS = 1800
#: Seconds for a look at whether it can be done.
LOOK_SECONDS = 120
#: Bytes of what the program says.
MAX_ANSWER = 64 * 1024
_PROGRAM = os.path.join(os.path.dirname(integrating.__file__), "__main__.py")
_REFUSED = 3
#: What a user sets for all of git; the environment of a job does not have it.
_GIT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")


class Jobs(Protocol):
    """What it needs of `Control`."""

    async def submit(self, requests: Sequence[JobRequest]) -> list[Accepted]: ...

    async def wait(self, selectors: Sequence[str]) -> list[JobView]: ...

    async def read_log(
        self, selector: str, stream: str, offset: int, *, limit: int
    ) -> LogChunk: ...


class Applying:
    """One application of one job's branch."""

    def __init__(
        self,
        *,
        jobs: Jobs,
        store: SqliteStore,
        repo: str,
        checkout: str,
        place: Place,
        now: Callable[[], float],
    ) -> None:
        self._jobs = jobs
        self._store = store
        self._repo = repo
        self._checkout = checkout
        self._place = place
        self._now = now

    async def apply(self, tip: str, mode: ApplyMode, *, commit_first: bool) -> Applied:
        """See `Control.apply`."""
        told = {
            "job": self._place.job,
            "checkout": self._checkout,
            "branch": self._place.branch,
            "base": self._place.base,
            "tip": tip,
            "mode": mode,
            "worktree": self._place.folder,
            "commit_first": commit_first,
            "date": f"@{int(self._now())} +0000",
            "dry_run": True,
        }
        self._check_free()
        # What is refused anyway is refused before there is a job for it.
        looked = await _look(told)
        if looked["how"] == "nothing":
            return self._applied(looked, None)
        view = await self._done({**told, "dry_run": False})
        done = await self._answer(view)
        applied = self._applied(done, view.id)
        data: dict[str, object] = {
            "by": view.id,
            "branch": applied.branch,
            "into": applied.into,
            "commit": applied.commit,
            "how": applied.how,
        }
        event = Event("job_applied", self._now(), self._repo, applied.job, data)
        await self._store.save([Noted(event)]).wait()
        return applied

    def _claims(self) -> list[str]:
        return ["write:workspace", str(own_worktree(self._place.job))]

    def _check_free(self) -> None:
        """Refuse while somebody else has the checkout."""
        wanted = [parse_claim(c, checkout=self._checkout) for c in self._claims()]
        for job, claims in self._store.claims(self._repo).items():
            found = first_conflict(wanted, claims)
            if found is None:
                continue
            [(state,)] = self._store.read_pending("job_state", job)
            if state in RESERVED:
                raise Refused(
                    f"job {job} runs in {self._checkout}: wait for it (forge-actors"
                    f" wait {job}), then try again"
                )
            if state in TERMINAL:
                raise Refused(
                    f"{self._checkout} is kept from others for what job {job} left;"
                    " see forge-actors quarantine list"
                )

    async def _done(self, told: dict[str, Any]) -> JobView:
        """Have it done by a job; how that ended."""
        request = JobRequest(
            repo=self._checkout,
            argv=[sys.executable, "-I", "-S", _PROGRAM, json.dumps(told)],
            kind="integration",
            priority="P1",
            claims=self._claims(),
            name=f"apply {self._place.branch}"[:100],
            replay="safe",
            queue_timeout=QUEUE_SECONDS,
            timeout=DONE_SECONDS,
            env={name: os.environ[name] for name in _GIT if name in os.environ},
        )
        [accepted] = await self._jobs.submit([request])
        [view] = await self._jobs.wait([accepted.id])
        return view

    async def _answer(self, view: JobView) -> dict[str, Any]:
        chunk = await self._jobs.read_log(view.id, "stdout", 0, limit=MAX_ANSWER)
        told = _decoded(chunk.data)
        if view.state == "succeeded" and "how" in told:
            return told
        if view.exit_code == _REFUSED and "refused" in told:
            raise Refused(str(told["refused"]))
        why = view.error.message if view.error is not None else "it said nothing"
        raise Refused(f"job {view.id}, which was to do it, is {view.state}: {why}")

    def _applied(self, done: dict[str, Any], by: str | None) -> Applied:
        return Applied(
            job=self._place.job,
            branch=self._place.branch,
            by=by,
            checkout=self._checkout,
            into=done["into"],
            commit=done["commit"],
            how=done["how"],
            commits=done["commits"],
        )


async def _look(told: dict[str, Any]) -> dict[str, Any]:
    """What it would come to.

    Raises:
        Refused: it cannot be done.
    """
    command = [sys.executable, "-I", "-S", _PROGRAM, json.dumps(told)]
    with trio.move_on_after(LOOK_SECONDS) as time:
        done = await trio.run_process(
            command, capture_stdout=True, capture_stderr=True, check=False
        )
    if time.cancelled_caught:
        raise Refused(f"it could not be looked at within {LOOK_SECONDS} s")
    answer = _decoded(done.stdout)
    if "refused" in answer:
        raise Refused(str(answer["refused"]))
    if "how" not in answer:
        words = done.stderr.decode("utf-8", "replace").strip()
        raise Refused(f"it could not be looked at: {words[-500:]}")
    return answer


def _decoded(out: bytes) -> dict[str, Any]:
    try:
        found = json.loads(out)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
