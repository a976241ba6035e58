"""The board: what a runtime knows of its own start and parts, and who is told of it."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.readiness import (
    STAGES,
    Answers,
    Failure,
    Readiness,
    answers,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.domain.readiness import Diagnostic, Stage, Verdict

#: The code of a failure of which more is known only when all has ended.
FAILED = "RUNTIME_FAILED"
#: What a runtime of a program has to have seen before it is ready.
EMBEDDED: tuple[Diagnostic, ...] = ("database", "scheduler")
#: What a service has to have seen; the rest, if it has more to offer.
SERVED: tuple[Diagnostic, ...] = (*EMBEDDED, "releaseCoherence", "endToEnd")


class Board:
    """The readiness of one runtime. Whoever is to be told of changes is added."""

    def __init__(self, required: tuple[Diagnostic, ...] = EMBEDDED) -> None:
        self.now = Readiness(required)
        #: The first thing that failed.
        self.failure: Failure | None = None
        #: What is wrong now and may be right again, by whom it is said of.
        self.complaints: dict[str, str] = {}
        #: What is wrong with the clean-up, which keeps nothing from being executed.
        self.clean_up: str | None = None
        self.became_ready = trio.Event()
        #: Writes a failure down where the history is, while that is open.
        self.note: Callable[[Failure], None] = _nowhere
        self._told: list[Callable[[], None]] = []
        self._of_failures: list[Callable[[Failure], None]] = []

    def tell(self, changed: Callable[[], None]) -> None:
        """Call this after each change from now on."""
        self._told.append(changed)

    def tell_failures(self, failed: Callable[[Failure], None]) -> None:
        """Call this with each failure from now on, once all others know of it."""
        self._of_failures.append(failed)

    def enter(self, stage: Stage) -> None:
        """A stage of the start begins: the one before has passed.

        Raises:
            ReadinessIncomplete: it cannot be ready yet.
        """
        self.now = self.now.enters(stage)
        if stage == "ready":
            self.became_ready.set()
        self._tell()

    def again(self) -> None:
        """The start begins anew; nothing of the last one counts."""
        self.now, self.failure = Readiness(self.now.required), None
        self.note = _nowhere
        self._tell()

    def require(self, name: Diagnostic) -> None:
        """From now on it is not ready before this has passed, too."""
        required = dict.fromkeys((*self.now.required, name))
        self.now = structs.replace(self.now, required=tuple(required))

    def observe(self, name: Diagnostic, verdict: Verdict) -> None:
        if self.now.diagnostics[name] != verdict:
            self.now = self.now.observes(name, verdict)
            self._tell()

    def give(self, reason: str) -> None:
        """Keep one more reason why it was not ready."""
        self.now = self.now.fails(reason, None)

    @property
    def answers(self) -> Answers:
        """What is said of it as a whole, each question by itself."""
        release = self.now.diagnostics["releaseCoherence"]
        return answers(ready=self.now.ready, clean_up=self.clean_up, release=release)

    def say_of_clean_up(self, problem: str | None) -> None:
        """What is wrong with the clean-up, or that nothing is."""
        if (problem is None) != (self.clean_up is None):
            self.clean_up = problem
            self._tell()

    def complain(self, about: str, words: str | None) -> None:
        """Something is wrong with a part, as these words say, or not any more."""
        if words == self.complaints.get(about):
            return
        if words is None:
            del self.complaints[about]
        else:
            self.complaints[about] = words
        self._tell()

    def fail(self, code: str, error: BaseException, name: Diagnostic | None) -> None:
        """Something failed for good; everybody knows before it has consequences."""
        failure = Failure(self.now.stage, code, message_of(error))
        self.now = self.now.fails(code, name)
        if self.failure is None:
            self.failure = failure
        self._tell()
        for told in self._of_failures:
            told(failure)
        self.note(failure)

    def fail_start(self, error: BaseException) -> None:
        """The stage that is under way failed."""
        part = STAGES[self.now.stage]
        self.fail(part.code, error, part.observes)

    def end(self, reason: str) -> None:
        """It ends now, for this reason; the first one counts."""
        if self.now.ending is None:
            self.now = structs.replace(self.now, ending=reason)
            self._tell()

    @contextmanager
    def guarding(self, code: str, name: Diagnostic | None) -> Iterator[None]:
        """Tell of a failure of the block before it ends anything else."""
        try:
            yield
        except Exception as error:
            # What follows from another failure, or is one of the start, is told of.
            if self.now.stage == "ready" and self.failure is None:
                self.fail(code, error, name)
            raise

    def _tell(self) -> None:
        for changed in self._told:
            changed()


def _nowhere(failure: Failure) -> None:
    """There is no history yet, or not any more."""


def message_of(error: BaseException) -> str:
    """An error in words; of one that is ours the kind says nothing more."""
    while isinstance(error, BaseExceptionGroup) and error.exceptions:
        error = error.exceptions[0]
    if isinstance(error, ForgeError | OSError):
        return str(error)
    return f"{type(error).__name__}: {error}"
