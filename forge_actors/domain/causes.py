"""Causes: what a schedule may wait for in place of a time.

Each has one way to be written, which is also how it is read: `clean`,
`succeeded:label:nightly`, `branch:release/*`. Jobs, branches and files are those of the
repository of the schedule.
"""

from __future__ import annotations

import re
from fnmatch import translate
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import Place, parse_place
from forge_actors.domain.jobs import KINDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import State

#: Characters of a pattern or a name.
MAX_PATTERN = 200
#: Repositories of which the files may be watched for schedules.
MAX_WATCHED = 32
#: Jobs that one schedule waits for together.
MAX_TOGETHER = 20

By = Literal["named", "name", "label", "kind", "schedule", "job", "any"]
#: What makes a pattern of a name.
_OF_PATTERNS = "*?["
_BYS: tuple[By, ...] = get_args(By)
KNOWN = (
    "clean, succeeded:JOBS, ended:JOBS, all:JOBS,JOBS, branch:NAME, file:PATTERN,"
    " issues, issues:label:LABEL or issues:OWNER/NAME,label:LABEL"
)
#: Labels that an issue may be asked to have.
MAX_ISSUE_LABELS = 20
#: Seconds from one question about issues to the next.
LEAST_PACE, USUAL_PACE, LONGEST_PACE = 30.0, 300.0, 86_400.0


@lru_cache(maxsize=4096)
def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(translate(text))


def _fits(pattern: str, text: str) -> bool:
    return _pattern(pattern).match(text) is not None


class Traits(Struct, frozen=True):
    """What is asked of a job by those that wait for some."""

    job: str
    kind: str
    name: str | None = None
    labels: tuple[str, ...] = ()
    origin: str = ""
    #: Who began the workflow that it is a job of, as an origin.
    began: str = ""

    @property
    def keys(self) -> list[tuple[By, str]]:
        """How jobs such as this may be named, but by patterns."""
        found: list[tuple[By, str]] = [("job", self.job), ("kind", self.kind)]
        found += (("label", label) for label in self.labels)
        if self.name is not None:
            found += [("name", self.name), ("named", self.name)]
        if self.origin.startswith("schedule:"):
            name = self.origin.removeprefix("schedule:")
            found += [("schedule", name), ("named", name)]
        return found


class Jobs(Struct, frozen=True):
    """Some of the jobs of a repository. Names and labels may be patterns."""

    by: By
    value: str = ""

    def __str__(self) -> str:
        if self.by == "any":
            return "*"
        return self.value if self.by == "named" else f"{self.by}:{self.value}"

    @property
    def exact(self) -> bool:
        """Whether it is no pattern: what it means is among the `keys` of a job."""
        return self.by != "any" and not any(each in self.value for each in _OF_PATTERNS)

    @property
    def told(self) -> str:
        """For people, in a sentence."""
        match self.by:
            case "any":
                return "a job"
            case "named":
                return f"a job, or a job of a schedule, called {self.value}"
            case "name":
                return f"a job called {self.value}"
            case "label":
                return f"a job with the label {self.value}"
            case "kind":
                return f"a job of the kind {self.value}"
            case "schedule":
                return f"a job of the schedule {self.value}"
            case "job":
                return f"job {self.value}"

    def has(self, job: Traits) -> bool:
        match self.by:
            case "any":
                return True
            case "named":
                return self._named(job.name) or job.origin == f"schedule:{self.value}"
            case "name":
                return self._named(job.name)
            case "label":
                return any(_fits(self.value, label) for label in job.labels)
            case "kind":
                return job.kind == self.value
            case "schedule":
                return job.origin == f"schedule:{self.value}"
            case "job":
                return job.job == self.value

    def _named(self, name: str | None) -> bool:
        return name is not None and _fits(self.value, name)


class Clean(Struct, frozen=True, tag="clean", tag_field="kind"):
    """The checkout has no changes any more that are not committed."""

    def __str__(self) -> str:
        return "clean"

    @property
    def told(self) -> str:
        return "the checkout becomes clean"


class Ended(Struct, frozen=True, tag="ended", tag_field="kind"):
    """A job has ended, or has ended well."""

    jobs: Jobs
    succeeded: bool = False

    def __str__(self) -> str:
        return f"{'succeeded' if self.succeeded else 'ended'}:{self.jobs}"

    @property
    def told(self) -> str:
        return f"{self.jobs.told} {'succeeds' if self.succeeded else 'ends'}"

    def counts(self, state: State) -> bool:
        return state == "succeeded" or not self.succeeded


class AllOf(Struct, frozen=True, tag="all", tag_field="kind"):
    """Of each of these a job has succeeded since the last time."""

    of: tuple[Jobs, ...]

    def __str__(self) -> str:
        return f"all:{','.join(map(str, self.of))}"

    @property
    def told(self) -> str:
        each = ", ".join(map(str, self.of))
        return f"a job of each of {each} has succeeded since the last time"


class Branch(Struct, frozen=True, tag="branch", tag_field="kind"):
    """A branch is at another commit, or is new. Those of remotes are `remotes/...`."""

    pattern: str

    def __str__(self) -> str:
        return f"branch:{self.pattern}"

    @property
    def told(self) -> str:
        like = any(each in self.pattern for each in _OF_PATTERNS)
        return f"{'a branch like' if like else 'branch'} {self.pattern} moves"

    def has(self, branch: str) -> bool:
        remote = branch.startswith("remotes/")
        if remote and not self.pattern.startswith("remotes/"):
            return False
        return _fits(self.pattern, branch)


class Files(Struct, frozen=True, tag="file", tag_field="kind"):
    """What is checked out has other files, as committed; the pattern is git's."""

    pattern: str

    def __str__(self) -> str:
        return f"file:{self.pattern}"

    @property
    def told(self) -> str:
        return f"commits change {self.pattern} in what is checked out"


class Issues(Struct, frozen=True, tag="issues", tag_field="kind"):
    """An open issue on GitHub changed, or is new. Each of them is a window."""

    #: None: the repository that `origin` of the schedule's is.
    place: Place | None = None
    #: It has all of these.
    labels: tuple[str, ...] = ()
    #: Seconds from one question to the next.
    every: float = USUAL_PACE

    def __str__(self) -> str:
        place = () if self.place is None else (str(self.place),)
        parts = [*place, *(f"label:{label}" for label in self.labels)]
        return f"issues:{','.join(parts)}" if parts else "issues"

    @property
    def told(self) -> str:
        many = "s" if len(self.labels) > 1 else ""
        labels = (
            f" with the label{many} {', '.join(self.labels)}" if self.labels else ""
        )
        return f"an open issue of {self.place or 'origin'}{labels} changes"


Cause = Clean | Ended | AllOf | Branch | Files | Issues
#: Those that are seen in a checkout, whose files are watched for them.
OF_CHECKOUT = (Clean, Branch, Files)
#: Seconds from the end of a job of such a schedule to its next start, unless it says
#: otherwise: what changes there may be what that job did.
USUAL_COOLDOWN = 60.0


def parse_cause(text: str, *, field: str = "on") -> Cause:
    """The cause that is written so.

    Raises:
        InvalidInput: it is none.
    """
    word, _, rest = text.strip().partition(":")
    parse = _PARSERS.get(word)
    bare = word in _BARE and ":" not in text
    if parse is None or (word == "clean" and not bare) or (not rest and not bare):
        raise InvalidInput(field, f"{_shown(text)} is none of {KNOWN}")
    return parse(rest, field)


def _jobs(text: str, field: str) -> Jobs:
    if text == "*":
        return Jobs("any")
    word, colon, value = text.partition(":")
    by: By = "named"
    for known in _BYS:
        if colon and word == known and known not in ("named", "any"):
            by, text = known, value
    _checked(text, field)
    if by == "kind" and text not in KINDS:
        raise InvalidInput(field, f"{text!r} is no kind of job; {', '.join(KINDS)} are")
    return Jobs(by, text)


def _all_of(text: str, field: str) -> AllOf:
    parts = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    if len(parts) > MAX_TOGETHER:
        raise InvalidInput(field, f"names more than {MAX_TOGETHER} jobs")
    of = tuple(_jobs(part, field) for part in parts)
    if any(each.by == "job" for each in of):
        raise InvalidInput(field, "all: names jobs that come again, so none by its id")
    return AllOf(of)


def _issues(text: str, field: str) -> Issues:
    parts = [part.strip() for part in text.split(",")] if text else []
    place = None
    if parts and not parts[0].startswith("label:"):
        place = parse_place(parts.pop(0), field=field)
    for part in parts:
        if not part.startswith("label:"):
            raise InvalidInput(field, f"{_shown(part)} is no label:LABEL")
    labels = tuple(
        dict.fromkeys(_checked(part.removeprefix("label:"), field) for part in parts)
    )
    if len(labels) > MAX_ISSUE_LABELS:
        raise InvalidInput(field, f"names more than {MAX_ISSUE_LABELS} labels")
    return Issues(place, labels)


def _checked(text: str, field: str) -> str:
    if not text or len(text) > MAX_PATTERN or not text.isprintable():
        raise InvalidInput(
            field, f"{_shown(text)} must have 1 to {MAX_PATTERN} printable characters"
        )
    return text


def _shown(text: str) -> str:
    return repr(text if len(text) <= MAX_PATTERN else f"{text[:MAX_PATTERN]}...")


#: Those that need nothing behind them.
_BARE = ("clean", "issues")
_PARSERS: dict[str, Callable[[str, str], Cause]] = {
    "clean": lambda text, field: Clean(),
    "succeeded": lambda text, field: Ended(_jobs(text, field), succeeded=True),
    "ended": lambda text, field: Ended(_jobs(text, field)),
    "all": _all_of,
    "branch": lambda text, field: Branch(_checked(text, field)),
    "file": lambda text, field: Files(_checked(text, field)),
    "issues": _issues,
}
