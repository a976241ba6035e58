"""What a workflow is to do, as data that never changes once it runs."""

from __future__ import annotations

import hashlib
import re
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.rounds import Terms, Turn

Kind = Literal["portfolio", "campaign", "goal"]
#: Which ends of the steps before it let a step begin: all of them good, one of them
#: not, or any.
When = Literal["succeeded", "failed", "ended"]
#: After a step that failed for good: nothing new starts, what depends on it is left
#: out, or what depends on it goes on.
OnFailure = Literal["stop", "skip", "continue"]

MAX_STEPS = 10_000
#: Edges of all steps together.
MAX_EDGES = 100_000
MAX_NAME = 64
MAX_GATE = 500
MAX_RETRIES = 100
MAX_CANARY = 100

_CONDITION = re.compile(
    r"\s*(?P<name>[A-Za-z0-9_-]+\.[A-Za-z_][A-Za-z0-9_]*)\s*"
    r"(?P<how>==|!=)\s*(?P<quote>['\"])(?P<text>[^'\"]*)(?P=quote)\s*"
)
_STEP = re.compile(rf"[A-Za-z0-9][A-Za-z0-9_-]{{0,{MAX_NAME - 1}}}")


class Condition(Struct, frozen=True):
    """An output of an earlier step is, or is not, a text. One that is missing is the
    empty text."""

    step: str
    output: str
    equal: bool
    text: str

    def __str__(self) -> str:
        how = "==" if self.equal else "!="
        return f'{self.step}.{self.output} {how} "{self.text}"'


class StepDefinition(Struct, frozen=True, omit_defaults=True):
    """One step: a job, a question to a person, or first the question."""

    name: str
    #: Id of the repository of its job; empty for a step without one.
    repo: str = ""
    request: JobRequest | None = None
    after: tuple[str, ...] = ()
    when: When = "succeeded"
    condition: Condition | None = None
    #: More jobs that it gets after one that failed.
    retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = 0
    #: What a person is asked before it begins.
    gate: str | None = None
    #: Files of earlier steps that its job gets: the step, and a pattern.
    inputs: tuple[tuple[str, str], ...] = ()
    #: Values for its places alone.
    values: dict[str, str] = {}
    #: The lines of its output are what a campaign is about.
    gives_items: bool = False
    #: What its job goes by, in a goal.
    turn: Turn | None = None


class Definition(Struct, frozen=True, omit_defaults=True):
    """What a workflow was begun with."""

    name: str
    kind: Kind
    steps: tuple[StepDefinition, ...] = ()
    on_failure: OnFailure = "skip"
    #: Jobs of it that wait or run at once; None: as many as are ready.
    parallel: Annotated[int, Meta(ge=1, le=MAX_STEPS)] | None = None
    #: Steps that may fail before nothing new starts.
    stop_after: Annotated[int, Meta(ge=1, le=MAX_STEPS)] | None = None
    #: What a campaign is about, where that was known, and what it does for each item.
    items: tuple[str, ...] = ()
    template: StepDefinition | None = None
    #: Of a campaign: steps that have to be good before any other begins.
    canary: Annotated[int, Meta(ge=0, le=MAX_CANARY)] = 0
    #: When a goal, which has an act and a check as its steps, is given up.
    goal: Terms | None = None
    #: The values that its places `${NAME}` have.
    parameters: dict[str, str] = {}
    #: Where it was written down.
    source: str | None = None


def digest_of(definition: Definition) -> str:
    """What names the content of a definition: two that do the same have the same."""
    plain = msgspec.structs.replace(definition, source=None)
    return hashlib.sha256(msgspec.json.encode(plain)).hexdigest()


def condition_of(text: str, *, field: str) -> Condition:
    """A condition as people write it: `build.version == "1.2"`.

    Raises:
        InvalidInput: it has another form.
    """
    match = _CONDITION.fullmatch(text)
    if match is None:
        raise InvalidInput(
            field, f'{text!r} has not the form STEP.OUTPUT == "text", or != '
        )
    step, _, output = match["name"].partition(".")
    return Condition(step, output, match["how"] == "==", match["text"])


def check_step_name(name: str, *, field: str) -> str:
    """A name that can be typed and stand in a placeholder.

    Raises:
        InvalidInput: it is none.
    """
    if not _STEP.fullmatch(name):
        raise InvalidInput(
            field,
            f"{name!r} is no name of a step: 1 to {MAX_NAME} letters, digits, dashes"
            " and underscores, a letter or digit first",
        )
    return name


def check_graph(definition: Definition) -> None:
    """Check that the steps of a definition can all be reached.

    Raises:
        InvalidInput: a name is there twice or means nothing, or steps wait for each
            other in a circle.
    """
    steps = definition.steps
    if not 1 <= len(steps) <= MAX_STEPS:
        raise InvalidInput("step", f"there must be from 1 to {MAX_STEPS} steps")
    places: dict[str, int] = {}
    for index, step in enumerate(steps):
        check_step_name(step.name, field=f"step[{index}].name")
        if step.name in places:
            raise InvalidInput(f"step[{index}].name", f"{step.name!r} is there twice")
        places[step.name] = index
    if sum(len(step.after) for step in steps) > MAX_EDGES:
        raise InvalidInput("step", f"there are more than {MAX_EDGES} dependencies")
    for index, step in enumerate(steps):
        for name in step.after:
            if name not in places:
                raise InvalidInput(
                    f"step[{index}].after", f"{name!r} is no step of this workflow"
                )
    _check_circles(steps, places)


def _check_circles(steps: tuple[StepDefinition, ...], places: dict[str, int]) -> None:
    """As by Kahn: what is left when everything that can go has gone is in circles, or
    behind one."""
    free = _in_order(steps, places)
    if len(free) < len(steps):
        circle = _circle(steps, places, set(range(len(steps))) - set(free))
        raise InvalidInput(
            f"step[{circle[0]}].after",
            "the steps wait for each other in a circle: "
            + " -> ".join(steps[index].name for index in (*circle, circle[0])),
        )


def _in_order(steps: tuple[StepDefinition, ...], places: dict[str, int]) -> list[int]:
    """The steps, each behind those that it runs after, but for those in circles."""
    unmet = [len(step.after) for step in steps]
    behind: list[list[int]] = [[] for _ in steps]
    for index, step in enumerate(steps):
        for name in step.after:
            behind[places[name]].append(index)
    free = [index for index, count in enumerate(unmet) if count == 0]
    for index in free:
        for other in behind[index]:
            unmet[other] -= 1
            if unmet[other] == 0:
                free.append(other)
    return free


def _circle(
    steps: tuple[StepDefinition, ...], places: dict[str, int], left: set[int]
) -> list[int]:
    """One circle among steps each of which waits for another one of them."""
    path = [min(left)]
    while True:
        before = next(p for n in steps[path[-1]].after if (p := places[n]) in left)
        if before in path:
            circle = path[path.index(before) :][::-1]
            first = circle.index(min(circle))
            return circle[first:] + circle[:first]
        path.append(before)


class Ancestors:
    """Which steps have certainly ended when another one begins: of each step a number
    with a bit for each of them, as sets would take gigabytes for a long chain."""

    def __init__(self, definition: Definition) -> None:
        steps = definition.steps
        self._places = {step.name: place for place, step in enumerate(steps)}
        self._before = [0] * len(steps)
        for place in _in_order(steps, self._places):
            found = 0
            for name in steps[place].after:
                before = self._places[name]
                found |= self._before[before] | 1 << before
            self._before[place] = found

    def has(self, step: str, before: str) -> bool:
        """Whether the one has ended when the other one begins."""
        place = self._places.get(before)
        return place is not None and bool(self._before[self._places[step]] >> place & 1)
