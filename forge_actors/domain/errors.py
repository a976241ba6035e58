"""Errors, named by who is at fault. The docstring of a class is its default message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from forge_actors.domain.fence import Action, Reason
    from forge_actors.domain.maintenance import CleanResult

#: Characters of the name of a field, and of what is wrong with it, in an error: what
#: others wrote is told in it, however long.
MAX_FIELD, MAX_PROBLEM = 400, 2000


class ForgeError(Exception):
    """Something went wrong in Forge Actors."""

    #: Stable word for programs; the HTTP routes and `--json` errors carry it.
    code = "ERROR"
    #: Exit status of the command line.
    exit_code = 1
    #: Status of the HTTP answer.
    http_status = 500

    def __init__(self, message: str | None = None) -> None:
        # One line without control characters, whatever it repeats of what others wrote.
        super().__init__(_line(message or type(self).__doc__ or ""))


class InvalidInput(ForgeError):
    """The input is not valid. (The caller's fault; nothing was changed.)"""

    code = "INVALID_INPUT"
    exit_code = 2
    http_status = 400

    def __init__(
        self, field: str, problem: str, *, allowed: tuple[str, ...] = ()
    ) -> None:
        self.field = field = _bounded(_line(field), MAX_FIELD)
        self.problem = problem = _bounded(_line(problem), MAX_PROBLEM)
        self.allowed = allowed
        hint = f" (allowed: {', '.join(allowed)})" if allowed else ""
        super().__init__(f"{field}: {problem}{hint}")


class NotFound(ForgeError):
    """There is no such thing. (It may have existed; it does not now.)"""

    code = "NOT_FOUND"
    exit_code = 2
    http_status = 404


class Refused(ForgeError):
    """The request is valid, but the present state does not allow it."""

    code = "REFUSED"
    exit_code = 3
    http_status = 409


class Forbidden(Refused):
    """The request is valid, but not for the one who sent it."""

    code = "FORBIDDEN"
    http_status = 403


class RequestTaken(Refused):
    """The id of the request belongs to another job, or to one that is gone."""


class Outdated(Refused):
    """It is not any more as it was when it was read."""

    code = "PRECONDITION_FAILED"
    http_status = 412

    def __init__(self, what: str) -> None:
        super().__init__(f"{what} is not as it was when it was read: read it again")


class ReleaseRefused(Refused):
    """Another release is the active one of this home."""

    code = "RELEASE_REFUSED"


class ReleaseDamaged(Refused):
    """What says which release is the active one of this home cannot be read."""

    code = "RELEASE_DAMAGED"


class AdmissionBlocked(Refused):
    """The policy that is in force lets in nothing of the kind.

    The code says which: `WORK_ADMISSION_BLOCKED:<policy>`; the message begins with it.
    """

    code = "WORK_ADMISSION_BLOCKED"

    def __init__(self, policy: str, message: str) -> None:
        self.code = f"{type(self).code}:{policy}"
        super().__init__(f"{self.code}: {message}")


class NotConverging(Refused):
    """Only a policy of convergence can be narrowed to one work."""

    code = "WORK_ADMISSION_TRANSITION_REQUIRES_CONVERGENCE"


class FencingTokenStale(Refused):
    """The attempt that asks is not the current one of its job any more."""

    code: Literal["FENCING_TOKEN_STALE"] = "FENCING_TOKEN_STALE"


class StaleFence(FencingTokenStale):
    """What is to be saved is of an attempt that is not the current one any more."""

    def __init__(self, job: str, attempt: int, fence: int | None) -> None:
        self.job = job
        self.attempt = attempt
        self.fence = fence
        super().__init__(
            f"{self.code}: attempt {attempt} with the fence {fence} is not the current"
            f" one of job {job}"
        )


class Unavailable(ForgeError):
    """No service runs on this home. Start one with: forge-actors serve"""

    code = "UNAVAILABLE"
    exit_code = 4
    http_status = 503


class StoreFailed(ForgeError):
    """The store could not save the change; nothing of it was kept."""

    code = "STORE_FAILED"
    http_status = 503


class WriterFenced(StoreFailed):
    """Another runtime has the home by now; nothing of the change was kept.

    The message is for programs too: `WRITER_FENCED:<action>:<reason>`.
    """

    code = "WRITER_FENCED"
    exit_code = 75

    def __init__(self, action: Action, reason: Reason) -> None:
        self.action = action
        self.reason = reason
        super().__init__(f"{self.code}:{action}:{reason}")


class StoreDamaged(StoreFailed):
    """The store is damaged; nothing starts on its home until it is restored."""

    code = "STORE_DAMAGED"
    exit_code = 3


class StoreFromTheFuture(ForgeError):
    """The store was written by a newer version of Forge Actors and was not touched."""

    code = "STORE_FROM_THE_FUTURE"
    exit_code = 3


class LauncherDown(ForgeError):
    """The node agent ended, so no job can be started until it is back."""

    code = "LAUNCHER_DOWN"
    http_status = 503


class CleanUpFailed(ForgeError):
    """The clean-up program could not do its work; nothing else is affected."""

    code = "CLEAN_UP_FAILED"

    def __init__(self, message: str, result: CleanResult | None = None) -> None:
        super().__init__(message)
        #: What it came to until then.
        self.result = result


class WorktreeFailed(ForgeError):
    """The worktree of a job could not be made."""

    code = "WORKTREE_FAILED"


class ServiceManagerFailed(ForgeError):
    """The manager of services did not do what it was asked."""

    code = "SERVICE_MANAGER_FAILED"
    exit_code = 3


class ActorStopped(ForgeError):
    """The actor ended without answering; whether it acted is unknown."""

    code = "ACTOR_STOPPED"
    http_status = 503


class MailboxClosed(ActorStopped):
    """The actor had already stopped, so it certainly did not act."""


class SetAsideError(Refused):
    """The repository was set aside, since its actor failed over and over."""

    code = "SET_ASIDE"


class RestartIntensityReached(ForgeError):
    """A part failed more often than its supervisor allows within the period."""

    code = "RESTART_INTENSITY"


def _line(text: str) -> str:
    if text.isprintable():
        return text
    # Only what has something to clean pays for it.
    from forge_actors.domain.harmless import clean

    return " ".join(clean(text).split())


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = (limit - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
