"""Where programs keep their sessions: whether one is there tells whether it resumes."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_NAME = re.compile(r"[0-9A-Za-z-]{1,64}")


def has_file(env: Mapping[str, str], variable: str, default: str, pattern: str) -> bool:
    """Whether a file of a program's folder matches. The folder is that of a variable,
    or of this name in the home of the user."""
    folder = env.get(variable) or os.path.join(env.get("HOME", ""), default)
    return any(Path(folder).glob(pattern))


def is_name(session: str) -> bool:
    """Whether it can be the name of a session, and no pattern or path."""
    return _NAME.fullmatch(session) is not None
