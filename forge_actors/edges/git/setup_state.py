"""How far the set-up commands of a worktree are: told by whoever runs them."""

from __future__ import annotations

import json
import os

#: In the entry of the worktree, so that it goes with that.
STATE_FILE = "forge-setup.json"
_MAX_BYTES = 64 * 1024
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def is_done(git_dir: str) -> bool:
    """Whether all of the commands have succeeded once."""
    try:
        fd = os.open(os.path.join(git_dir, STATE_FILE), _FLAGS)
        try:
            told = json.loads(os.read(fd, _MAX_BYTES))
        finally:
            os.close(fd)
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(told, dict) and told.get("done") is True
