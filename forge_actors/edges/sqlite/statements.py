"""The SQL of this room, by name. It lives in .sql files, beside its explanations."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

FILES = (
    "queries.sql",
    "cleaning.sql",
    "schedules.sql",
    "trust.sql",
    "policies.sql",
    "workflows.sql",
    "controllers.sql",
    "epics.sql",
    "looks.sql",
    "inbox.sql",
    "timeline.sql",
)
_NAME = re.compile(r"^-- name: (\w+)$", re.MULTILINE)


@cache
def migrations() -> dict[int, str]:
    """The statements that lead from one version of the schema to the next."""
    folder = files(__package__).joinpath("migrations")
    found = (entry for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return {int(entry.name[:4]): entry.read_text("utf-8") for entry in found}


@cache
def queries() -> dict[str, str]:
    """Every named statement, without its comments."""
    folder = files(__package__)
    texts = [folder.joinpath(name).read_text("utf-8") for name in FILES]
    parts = _NAME.split("\n".join(texts))[1:]
    return {
        name: "\n".join(
            line for line in body.splitlines() if not line.startswith("--")
        ).strip()
        for name, body in zip(parts[::2], parts[1::2], strict=True)
    }
