"""Inputs: files that earlier jobs kept and that a job finds when it starts.

A request names them as `JOB` or `JOB:GLOB`. They are the artifacts of the last attempt
of that job, all of them or those that the pattern means, in the way in which it means
files when they are collected.
"""

from __future__ import annotations

import fnmatch
import re
from functools import cache
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct, structs

from forge_actors.domain.artifacts import UNMATCHED, check_glob
from forge_actors.domain.errors import ForgeError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from forge_actors.domain.artifacts import Artifacts

#: Inputs of one job.
MAX_INPUTS = 32
#: The variable that tells a job where they are.
VARIABLE = "FORGE_INPUTS"
#: The error of a job that did not start because one is not there.
INPUTS_MISSING = "INPUTS_MISSING"
#: A name of a job that can be the name of a folder, on any system.
_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,63}")


class InputsMissing(ForgeError):
    """A job cannot have the files that it was promised."""

    code = INPUTS_MISSING


class Input(Struct, frozen=True, omit_defaults=True):
    """The files of one job, below a folder of this name."""

    job: str
    folder: str
    #: Which of them; None: all.
    pattern: str | None = None


class InputsWanted(Struct, frozen=True):
    """The inputs of one attempt, which are to be in `folder` before it starts."""

    folder: str
    inputs: tuple[Input, ...]
    #: What all of them may be together, and how long it may take.
    files: int
    bytes: int
    seconds: float
    placed: bool = False


class Inputs(Protocol):
    """Puts the inputs of attempts in their places, and takes them away again."""

    async def place(self, wanted: InputsWanted) -> None:
        """Have copies of all of them in the folder, which nobody else has.

        Cancelled, it may leave some of them.

        Raises:
            InputsMissing: it cannot, and nothing is left.
        """

    async def remove(self, folder: str) -> None:
        """Have none of them there any more, as far as that can be done."""


def split_input(text: str, *, field: str) -> tuple[str, str | None]:
    """The job and the pattern that `JOB[:GLOB]` names.

    Raises:
        InvalidInput: it cannot mean anything.
    """
    job, given, pattern = text.partition(":")
    if not job:
        raise InvalidInput(field, f"{text[:100]!r} is neither JOB nor JOB:GLOB")
    return job, check_glob(pattern, field=field) if given else None


def folder_of(job: str, name: str | None, taken: Collection[str]) -> str:
    """The folder for the files of a job: its name if that can be one, else its id."""
    plain = name is not None and _PLAIN.fullmatch(name) and name not in taken
    return name if plain and name is not None else job


def input_text(one: Input) -> str:
    """As a request has it."""
    return one.job if one.pattern is None else f"{one.job}:{one.pattern}"


def moved_on(
    inputs: tuple[Input, ...], targets: Mapping[str, str]
) -> tuple[Input, ...]:
    """The same of the jobs that are in the place of others."""
    moved = []
    for one in inputs:
        job = targets.get(one.job, one.job)
        # One without a name of its own has the folder that is named by its job.
        folder = job if one.folder == one.job else one.folder
        moved.append(structs.replace(one, job=job, folder=folder))
    return tuple(moved)


def means(pattern: str, path: str) -> bool:
    """Whether a pattern means a file, or a folder that it is in."""
    parts = pattern.split("/")
    places = _ahead({0}, parts)
    for name in path.split("/"):
        further: set[int] = set()
        for place in places:
            many = parts[place] == "**"
            if not (not name.startswith(".") if many else _fits(name, parts[place])):
                continue
            if place == len(parts) - 1:
                return True
            further.add(place if many else place + 1)
        places = _ahead(further, parts)
    return False


def missing(one: Input, kept: Artifacts) -> str | None:
    """Why a job cannot have these files of what was kept; None if it can."""
    if kept.state == "removed":
        return f"the artifacts of job {one.job} were removed by the clean-up"
    if kept.error is not None:
        return f"job {one.job} kept no artifacts: {kept.error}"
    pattern = one.pattern
    for left in kept.left_out:
        # Without a path it is what came after: any of it may be meant.
        meant = pattern is None or not left.path or means(pattern, left.path)
        if meant and left.reason != UNMATCHED:
            what = left.path or "something"
            return f"job {one.job} did not keep {what!r}: {left.reason}"
    found = [
        file for file in kept.files if pattern is None or means(pattern, file.path)
    ]
    if not found:
        which = "" if pattern is None else f" that {pattern} means"
        return f"job {one.job} kept no artifact{which}"
    return None


def _ahead(places: set[int], parts: list[str]) -> set[int]:
    """Also those behind each `**`, which may stand for no folder at all."""
    found = set(places)
    for place in sorted(places):
        while parts[place] == "**" and place < len(parts) - 1:
            place += 1
            found.add(place)
    return found


@cache
def _matcher(part: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(part))


def _fits(name: str, part: str) -> bool:
    if name.startswith(".") and not part.startswith("."):
        return False
    return _matcher(part).match(name) is not None
