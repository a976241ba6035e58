"""Files of schedules, as the service takes them."""

from __future__ import annotations

import json
import os
from typing import Any

from forge_actors.domain import toml
from forge_actors.domain.errors import InvalidInput

#: Bytes of a file that are read.
MAX_BYTES = 4 << 20
_KEYS = ("schedule",)


def read_schedules(path: str) -> list[dict[str, Any]]:
    """The `[[schedule]]` tables of a file; repositories are beside it.

    Raises:
        InvalidInput: it cannot be read, or has no such form.
    """
    table = read_table(path)
    for key in table:
        if key not in _KEYS:
            raise InvalidInput(key, "is not known; a file has [[schedule]] tables")
    schedules = table.get("schedule", [])
    if not isinstance(schedules, list) or not all(
        isinstance(entry, dict) for entry in schedules
    ):
        raise InvalidInput("schedule", "is written [[schedule]], once for each")
    # TOML has times of its own; others say them as text.
    schedules = json.loads(json.dumps(schedules, default=str))
    beside = os.path.dirname(os.path.realpath(path))
    for entry in schedules:
        repo = entry.get("repo")
        if isinstance(repo, str) and (os.sep in repo or repo in (".", "..")):
            entry["repo"] = os.path.normpath(os.path.join(beside, repo))
    return list(schedules)


def read_table(path: str) -> dict[str, Any]:
    """A file in TOML.

    Raises:
        InvalidInput: it cannot be read.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise InvalidInput("file", f"{path}: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise InvalidInput("file", f"{path} has more than {MAX_BYTES} bytes")
    try:
        return toml.read_table(data.decode(), path)
    except UnicodeDecodeError:
        raise InvalidInput("file", f"{path} is no UTF-8 text") from None
    except InvalidInput as error:
        raise InvalidInput("file", f"{path} {error.problem}") from None
