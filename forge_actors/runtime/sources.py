"""Sources: the file of a home and the environment that overrules it.

An error names the file and the line, or the variable, and what is allowed there.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct, to_builtins

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.redaction import bounded
from forge_actors.domain.requests import nearest
from forge_actors.domain.settings import SettingView
from forge_actors.domain.toml import read_table
from forge_actors.runtime.settings import Settings, settings_from

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SETTINGS_FILE = "settings.toml"
#: Bytes of a settings file; a longer one is something else.
MAX_FILE = 1024 * 1024

_VARIABLES: dict[str, tuple[tuple[str, ...], type]] = {
    "FORGE_MAX_WORKERS": (("limits", "workers"), int),
    "FORGE_MAX_ACTIVE_REPOS": (("limits", "active_repositories"), int),
    "FORGE_MAX_HEAVY_CHECKS": (("limits", "heavy_checks"), int),
    "FORGE_MAX_AGENT_PROCESSES": (("limits", "agents"), int),
    "FORGE_PER_REPO_WORKERS": (("limits", "repository_workers"), int),
    "FORGE_MIN_FREE_MEMORY_MB": (("pressure", "min_free_memory_mb"), int),
    "FORGE_MAX_LOAD_PER_CPU": (("pressure", "max_load_per_cpu"), float),
}
#: Variables with these beginnings are limits; one we do not know is a slip.
_PREFIXES = ("FORGE_MAX_", "FORGE_MIN_", "FORGE_PER_")

_TOML_PLACE = re.compile(r" \(at line (\d+), (column \d+)\)$")
_HEADER = re.compile(r"\s*\[{1,2}(?P<key>[^\[\]]+)\]")
_ASSIGNED = re.compile(r"""\s*(?P<key>(?:"[^"]*"|'[^']*'|[\w\s.-])+)=""")
_KEY_PART = re.compile(r"""(?:"([^"]*)"|'([^']*)'|([\w-]+))""")


class Loaded(Struct, frozen=True):
    """Settings, and where those come from that are no defaults."""

    settings: Settings
    #: By the full name of a setting: what its view says of it.
    sources: dict[str, SettingView]

    def views(self) -> list[SettingView]:
        """Every setting, with its source."""
        return [
            self.sources.get(name) or SettingView(name, value, "default")
            for name, value in self.settings.values().items()
        ]


def load(path: Path, environ: Mapping[str, str] = os.environ) -> Loaded:
    """The settings of a file, if there is one, overruled by the environment.

    Raises:
        InvalidInput: naming the file and its line, or the variable.
    """
    text, data = _read(path)
    try:
        settings = settings_from(data)
    except InvalidInput as error:
        place = _place(path, text, error.field)
        raise InvalidInput(
            f"{place}: {error.field}", error.problem, allowed=error.allowed
        ) from None
    return overruled(Loaded(settings, _sources(path, text, data, settings)), environ)


def given(settings: Settings) -> Loaded:
    """Settings that a program gave."""
    values = settings.values().items()
    return Loaded(settings, {n: SettingView(n, v, "program") for n, v in values})


def overruled(loaded: Loaded, environ: Mapping[str, str]) -> Loaded:
    """The same settings with what the environment says instead.

    Raises:
        InvalidInput: naming the variable.
    """
    settings, sources = loaded.settings, dict(loaded.sources)
    variables = [
        *((variable, *what) for variable, what in _VARIABLES.items()),
        *((_variable(n), ("providers", n, "limit"), int) for n in settings.providers),
    ]
    known = {variable for variable, _, _ in variables}
    for variable in environ:
        if variable.startswith(_PREFIXES) and variable not in known:
            near = nearest(variable, known)
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidInput(variable, f"is no variable of ours{hint}")
    for variable, path, kind in variables:
        if variable in environ:
            value = _number(variable, environ[variable], kind)
            settings = _with(settings, path, value, variable)
            name = ".".join(path)
            sources[name] = SettingView(name, value, "environment", variable)
    return Loaded(settings, sources)


def _with(
    settings: Settings, path: tuple[str, ...], value: float, variable: str
) -> Settings:
    """The settings with one other value."""
    tables = to_builtins(settings)
    table = tables
    for part in path[:-1]:
        table = table[part]
    table[path[-1]] = value
    try:
        return settings_from(tables)
    except InvalidInput as error:
        problem = f"{value} is not allowed for {'.'.join(path)}"
        raise InvalidInput(variable, problem, allowed=error.allowed) from None


def _variable(provider: str) -> str:
    """The variable that sets the limit of a provider."""
    word = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    if provider == "github-copilot":
        word = "GITHUB"
    return f"FORGE_MAX_{word}_PROCESSES"


def _number(variable: str, text: str, kind: type) -> float:
    try:
        number: float = kind(text)
    except ValueError:
        raise InvalidInput(variable, f"{bounded(text, 60)!r} is no number") from None
    return number


def _read(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a settings file and its tables; empty if there is no file."""
    try:
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise InvalidInput(str(path), "is no plain file")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except FileNotFoundError:
        if path.is_symlink():
            raise InvalidInput(str(path), "is a link to nothing") from None
        return "", {}
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None
    if len(raw) > MAX_FILE:
        raise InvalidInput(str(path), f"has more than {MAX_FILE} bytes")
    try:
        text = raw.decode()
        return text, read_table(text, str(path))
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        problem = "is no valid TOML: it is not UTF-8"
        raise InvalidInput(f"{path}:{line}", problem) from None
    except InvalidInput as error:
        found = _TOML_PLACE.search(error.problem)
        if found is None:
            raise
        problem = f"{error.problem[: found.start()]} ({found[2]})"
        raise InvalidInput(f"{path}:{found[1]}", problem) from None


def _sources(
    path: Path, text: str, data: dict[str, Any], settings: Settings
) -> dict[str, SettingView]:
    """The settings that a file names."""
    named = set(_named("", data))
    # A provider of the file without a limit has the one of a provider of its own.
    named |= {f"providers.{name}.limit" for name in data.get("providers", {})}
    if "webhooks" in data:
        named |= {name for name in settings.values() if name.startswith("webhooks.")}
    return {
        name: SettingView(name, value, "file", _place(path, text, name))
        for name, value in settings.values().items()
        if name in named
    }


def _named(place: str, table: dict[str, Any]) -> Iterator[str]:
    """The full names of the settings in a table, and in those in it."""
    for name, value in table.items():
        if isinstance(value, dict):
            yield from _named(f"{place}{name}.", value)
        else:
            yield f"{place}{name}"


def _place(path: Path, text: str, field: str) -> str:
    """The file, and the line that sets a field or the table it is in."""
    best, found = "", None
    table = ""
    for number, line in enumerate(text.split("\n"), start=1):
        if (header := _HEADER.match(line)) is not None:
            name = table = _key(header["key"])
        elif (assigned := _ASSIGNED.match(line)) is not None:
            name = ".".join(filter(None, (table, _key(assigned["key"]))))
        else:
            continue
        if f"{field}.".startswith(f"{name}.") and len(name) > len(best):
            best, found = name, number
        elif found is None and name.startswith(f"{field}."):
            found = number  # a table that is only in the names of others
    return str(path) if found is None else f"{path}:{found}"


def _key(text: str) -> str:
    """A dotted key of TOML without its quotes."""
    return ".".join(filter(None, (p for m in _KEY_PART.findall(text) for p in m)))
