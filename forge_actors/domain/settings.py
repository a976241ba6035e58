"""What readers see of the settings: where each is from, what a reload changed."""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

#: None where nothing is set, and another setting holds instead.
Value: TypeAlias = bool | int | float | str | list[str] | None

#: `program`: given by whoever opened the runtime.
Origin: TypeAlias = Literal["default", "file", "environment", "program"]


class SettingView(Struct, frozen=True):
    """One setting in force, by its full name such as `limits.workers`."""

    name: str
    value: Value
    source: Origin
    #: The file and its line, or the variable; None where there is none.
    at: str | None = None


class SettingChange(Struct, frozen=True):
    """One setting that a reload changed. None: it was, or is, not there."""

    name: str
    old: Value
    new: Value
    #: The old one holds until the service is started again.
    needs_restart: bool = False
