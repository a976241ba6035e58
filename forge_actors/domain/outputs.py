"""Outputs: small values that a job hands on, under names that its request declares.

A job writes them into a file of its own, as lines `NAME=value`; a value of several
lines stands between `NAME<<WORD` and a line that is that word. What is wrong is left
out and said, and the rest counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.launch import Receipt

#: Names that one job may declare, and characters of one.
MAX_NAMES = 64
MAX_NAME_LENGTH = 64
#: Problems that are told one by one.
MAX_TOLD = 5

_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_name = re.compile(_NAME)
_line = re.compile(rf"(?P<name>{_NAME})(?P<how>=|<<)(?P<rest>.*)")
_word = re.compile(r"\S{1,64}")


class ToldOutputs(Struct, frozen=True, omit_defaults=True):
    """What one attempt wrote, as the launcher found it, with its secrets masked.

    `error`: why nothing of it counts.
    """

    text: str = ""
    error: str | None = None


class Outputs(NamedTuple):
    """The values that a job handed on, and what is wrong with them."""

    values: dict[str, str]
    problem: str | None = None


class _Found(NamedTuple):
    """Something in the text: a value, or a problem in its place."""

    name: str
    value: str = ""
    problem: str | None = None


def check_names(names: Sequence[str], *, field: str = "outputs") -> tuple[str, ...]:
    """The names that a job declares, each once.

    Raises:
        InvalidInput: one cannot be a name, or there are too many.
    """
    for name in names:
        if not _name.fullmatch(name) or len(name) > MAX_NAME_LENGTH:
            raise InvalidInput(
                field,
                f"{name[:MAX_NAME_LENGTH]!r} cannot name an output: it is 1 to"
                f" {MAX_NAME_LENGTH} letters, digits and _, and begins with no digit",
            )
    found = tuple(dict.fromkeys(names))
    if len(found) > MAX_NAMES:
        raise InvalidInput(field, f"are more than {MAX_NAMES}")
    return found


def outputs_of(spec: JobSpec, receipt: Receipt | None) -> Outputs:
    """What a job that has ended hands on; `receipt` is that of its last attempt."""
    if not spec.outputs:
        return Outputs({})
    told = None if receipt is None else receipt.outputs
    if told is None and spec.verify is not None:
        # Its check writes none: they are those of the work that was checked.
        told = spec.verify.outputs
    if told is None:
        return Outputs({}, "nothing is known of its outputs: it did not run to its end")
    if told.error is not None:
        return Outputs({}, f"its outputs do not count: {told.error}")
    return parse(spec.outputs, told.text)


def shown_outputs(
    spec: JobSpec, receipt: Receipt | None, *, ended: bool
) -> Outputs | None:
    """The same as readers see it, without secrets; None for a job without any."""
    if not spec.outputs:
        return None
    if not ended:
        return Outputs({})
    values, problem = outputs_of(spec, receipt)
    return Outputs({name: redact(text) for name, text in values.items()}, problem)


def parse(names: Sequence[str], text: str) -> Outputs:
    """The values of these names in what a job wrote; of one name the last counts."""
    values: dict[str, str] = {}
    problems: list[str] = []
    for found in _found(text):
        if found.problem is not None:
            problems.append(found.problem)
        elif found.name not in names:
            problems.append(f"{_short(found.name)} was not declared")
        elif clean_lines(found.value) != found.value:
            problems.append(f"{found.name} has a control character")
        else:
            values[found.name] = found.value
    problems += [f"{name} is missing" for name in names if name not in values]
    return Outputs(values, _told(list(dict.fromkeys(problems))))


def _found(text: str) -> Iterator[_Found]:
    lines = enumerate(text.split("\n"), start=1)
    for number, line in lines:
        match = _line.fullmatch(line)
        if match is None:
            if line:
                problem = f"line {number} is neither NAME=value nor NAME<<WORD"
                yield _Found("", problem=problem)
        elif match["how"] == "=":
            yield _Found(match["name"], match["rest"])
        elif not _word.fullmatch(match["rest"]):
            problem = f"line {number} names no word behind << that ends the value"
            yield _Found("", problem=problem)
        else:
            inner: list[str] = []
            for _, each in lines:
                if each == match["rest"]:
                    yield _Found(match["name"], "\n".join(inner))
                    break
                inner.append(each)
            else:
                problem = f"the value that begins in line {number} does not end"
                yield _Found("", problem=problem)


def _short(name: str) -> str:
    return name if len(name) <= MAX_NAME_LENGTH else f"{name[:MAX_NAME_LENGTH]}…"


def _told(problems: list[str]) -> str | None:
    if not problems:
        return None
    more = len(problems) - MAX_TOLD
    told = "; ".join(problems[:MAX_TOLD])
    return f"{told}; and {more} more" if more > 0 else told
