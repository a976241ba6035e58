"""Placeholders: `${name}` in a text, filled with values and never read by a shell.

    fill("deploy ${build.version}", {"build.version": "1.2"}, field="argv[0]")

A name has letters, digits, underscores, dashes and dots. `$${name}` is the text
`${name}`; every other dollar sign stays as it is.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from forge_actors.domain.requests import JobRequest

_PLACE = re.compile(
    r"\$(?P<plain>\$(?=\{))?(?:\{(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)\})?"
)
#: The fields of a job in which they are filled, besides `argv` and `env`.
TEXTS = ("repo", "name", "prompt", "stdin", "cwd", "branch", "base", "verify")


def names(text: str) -> Iterator[str]:
    """The names that a text has places for, in order."""
    return (m["name"] for m in _PLACE.finditer(text) if m["name"] and not m["plain"])


def fill(text: str, values: Mapping[str, str], *, field: str) -> str:
    """The text with a value in each place.

    Raises:
        InvalidInput: there is no value of that name.
    """

    def value(match: re.Match[str]) -> str:
        name = match["name"]
        if match["plain"]:
            return match[0][1:]
        if name is None:
            return match[0]
        if name not in values:
            known = ", ".join(sorted(values)) or "none"
            raise InvalidInput(
                field, f"nothing is called {name!r} here; there is: {known}"
            )
        return values[name]

    return _PLACE.sub(value, text)


def names_in(request: JobRequest) -> set[str]:
    """The names that a job has places for."""
    found: set[str] = set()

    def look(text: str, _: str) -> str:
        found.update(names(text))
        return text

    _each(request, look)
    return found


def filled(request: JobRequest, values: Mapping[str, str]) -> JobRequest:
    """The job with a value in each place; no value becomes more than one argument.

    Raises:
        InvalidInput: naming the field, if there is no such value.
    """
    return _each(request, lambda text, field: fill(text, values, field=field))


def _each(request: JobRequest, change: Callable[[str, str], str]) -> JobRequest:
    texts = {
        field: change(value, field)
        for field in TEXTS
        if (value := getattr(request, field)) is not None
    }
    argv = [
        change(part, f"argv[{index}]") if isinstance(part, str) else part
        for index, part in enumerate(request.argv)
    ]
    env = {name: change(text, f"env.{name}") for name, text in request.env.items()}
    return structs.replace(request, argv=argv, env=env, **texts)
