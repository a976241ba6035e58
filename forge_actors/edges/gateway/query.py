"""What a request carries, its query and its body, checked before anything is asked."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import parse_qsl

import msgspec

from forge_actors.domain.errors import ForgeError, InvalidInput
from forge_actors.domain.requests import (
    MAX_BATCH,
    JobRequest,
    explain_mismatch,
    nearest,
    unknown_word,
)
from forge_actors.domain.templates import TemplateLine

if TYPE_CHECKING:
    from collections.abc import Sequence

MAX_PARAMETERS = 1000
_FALSE = frozenset({"0", "false", "no"})
_TRUE = frozenset({"1", "true", "yes"})

T = TypeVar("T")


class Nothing(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that says all in its path."""


class Query:
    """The parameters of one request; a name that its route does not know is refused.

    Raises:
        InvalidInput: an unknown name, or a value that is not what was asked for.
    """

    def __init__(self, raw: str, known: tuple[str, ...]) -> None:
        self._values: dict[str, list[str]] = {}
        if not raw:
            return
        try:
            pairs = parse_qsl(
                raw, keep_blank_values=True, max_num_fields=MAX_PARAMETERS
            )
        except ValueError:
            raise InvalidInput("query", "has too many parameters") from None
        for name, value in pairs:
            if name not in known:
                near = nearest(name, known)
                hint = f"; did you mean {near!r}?" if near else ""
                raise InvalidInput(name, f"is no parameter here{hint}", allowed=known)
            self._values.setdefault(name, []).append(value)

    def all(self, name: str) -> list[str]:
        return self._values.get(name, [])

    def one(self, name: str) -> str | None:
        values = self.all(name)
        if len(values) > 1:
            raise InvalidInput(name, "is given more than once")
        return values[0] if values else None

    def flag(self, name: str) -> bool:
        given = self.one(name)
        text = "0" if given is None else given.lower()
        if text not in _TRUE | _FALSE:
            raise InvalidInput(name, f"{text!r} is neither 1 nor 0")
        return text in _TRUE

    def number(self, name: str, default: int, *, least: int, most: int = 2**53) -> int:
        text = self.one(name)
        if text is None:
            return default
        try:
            value = int(text)
        except ValueError:
            raise InvalidInput(name, f"{text!r} is no whole number") from None
        if not least <= value <= most:
            raise InvalidInput(name, f"{value} is outside {least} to {most}")
        return value

    def choices(self, name: str, allowed: Sequence[str]) -> list[str]:
        """The values of a repeated parameter, each one of `allowed`."""
        values = self.all(name)
        for value in values:
            if value not in allowed:
                raise unknown_word(name, value, allowed)
        return values


def decode(body: bytes, wanted: type[T], *, field: str = "body") -> T:
    """A JSON body as a `wanted` Struct; an empty body is an empty object."""
    try:
        return msgspec.json.decode(body or b"{}", type=wanted)
    except msgspec.ValidationError as error:
        raise explain_mismatch(error, wanted) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise _no_json(error, field) from None


def decode_lines(
    body: bytes,
) -> tuple[list[JobRequest], list[int], dict[int, TemplateLine]]:
    """The jobs of a batch, one JSON object a line, and the number of each one's line;
    by their place those that a template makes, of which there is no more yet.

    Blank lines count but are passed over.

    Raises:
        InvalidInput: its field begins with `line N`.
    """
    requests: list[JobRequest] = []
    numbers: list[int] = []
    by_template: dict[int, TemplateLine] = {}
    decoder = msgspec.json.Decoder(JobRequest)
    for number, line in enumerate(body.split(b"\n"), start=1):
        if not line.strip():
            continue
        # Looked for first: most batches have no such word in them.
        kind = TemplateLine if _is_by_template(line) else JobRequest
        try:
            if kind is JobRequest:
                requests.append(decoder.decode(line))
            else:
                told = msgspec.json.decode(line, type=TemplateLine)
                by_template[len(requests)] = told
                requests.append(JobRequest(told.repo, []))
        except msgspec.ValidationError as error:
            found = explain_mismatch(error, kind)
            raise InvalidInput(
                f"line {number}: {found.field}", found.problem, allowed=found.allowed
            ) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _no_json(error, f"line {number}") from None
        numbers.append(number)
    if not requests:
        raise InvalidInput("batch", "holds no job")
    if len(requests) > MAX_BATCH:
        raise InvalidInput("batch", f"holds more than {MAX_BATCH} jobs")
    return requests, numbers, by_template


def _is_by_template(line: bytes) -> bool:
    if b'"template"' not in line:
        return False
    with suppress(msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return "template" in msgspec.json.decode(line, type=dict[str, msgspec.Raw])
    return False


def beside(base: str, repo: str) -> str:
    """`repo` as seen from the folder `base`; names and absolute paths stay."""
    return os.path.normpath(os.path.join(base, repo)) if _is_path(repo) else repo


def _is_path(repo: str) -> bool:
    return "/" in repo or repo in (".", "..")


def check_places(requests: Sequence[JobRequest]) -> None:
    """Refuse relative paths: they would begin in the service's own folder.

    Raises:
        InvalidInput: naming the job's place in the list.
    """
    for index, request in enumerate(requests):
        if _is_path(request.repo) and not os.path.isabs(request.repo):
            where = f"jobs[{index}]." if len(requests) > 1 else ""
            raise InvalidInput(
                f"{where}repo",
                f"{request.repo!r} is relative; give a name or a path from the root",
            )


def at_line(error: ForgeError, numbers: Sequence[int]) -> ForgeError:
    """The same error, with the line in place of `jobs[i]`, the place in the list."""
    if isinstance(error, InvalidInput):
        field = _with_line(error.field, numbers)
        return InvalidInput(field, error.problem, allowed=error.allowed)
    return type(error)(_with_line(str(error), numbers))


def _with_line(text: str, numbers: Sequence[int]) -> str:
    match = re.match(r"jobs\[(?P<index>\d+)\](?:\.|: |\Z)", text)
    if match is not None:
        rest = text[match.end() :]
        line = f"line {numbers[int(match['index'])]}"
        return f"{line}: {rest}" if rest else line
    # Of a single job its place is not told.
    return f"line {numbers[0]}: {text}" if len(numbers) == 1 else text


def _no_json(error: Exception, field: str) -> InvalidInput:
    if isinstance(error, RecursionError):
        return InvalidInput(field, "is nested too deeply")
    reason = str(error).removeprefix("JSON is malformed: ")
    return InvalidInput(field, f"is not valid JSON: {reason}")
