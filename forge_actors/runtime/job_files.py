"""Job files as they are read: the jobs of a run, and the settings it has."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.jobfile import JobFile, check
from forge_actors.domain.requests import convert
from forge_actors.domain.toml import read_table
from forge_actors.runtime.settings import settings_from
from forge_actors.runtime.sources import given, overruled

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.runtime.settings import Settings


def load_job_file(path: Path) -> tuple[JobFile, Settings]:
    """A job file and the settings it makes.

    Raises:
        InvalidInput: naming the file and what is wrong in it.
    """
    try:
        data = read_table(path.read_text("utf-8"), str(path))
    except OSError as error:
        raise InvalidInput(str(path), f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidInput(str(path), f"is no valid TOML: {error}") from None
    try:
        file = convert(data, JobFile)
        check(file)
        settings = given(settings_from(file.settings))
        return file, overruled(settings, os.environ).settings
    except InvalidInput as error:
        raise in_file(path, error.field, error) from None


def in_file(path: Path, field: str, error: InvalidInput) -> InvalidInput:
    """The same error with the file in front."""
    return InvalidInput(f"{path}: {field}", error.problem, allowed=error.allowed)
