"""What is where in a home: everything there that is ours has its name here."""

from __future__ import annotations

import fcntl
import re
from typing import TYPE_CHECKING

from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    from pathlib import Path

#: The jobs, the repositories and their history.
STORE_FILE = "store.sqlite"
#: Locked by a node agent as long as it lives; says which one that is.
AGENT_LOCK = "agent.lock"
#: Stores that a restore has replaced.
REPLACED = "replaced"


def refuse_living_agent(home: Path) -> None:
    """Refuse to go on while a node agent of the home lives, and has jobs.

    Raises:
        Refused: as it says, with the way to end them.
    """
    try:
        with (home / AGENT_LOCK).open(encoding="ascii", errors="replace") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                pid = re.search(r"(\d+)\s*$", file.read(64))
                named = f" (pid {pid[1]})" if pid else ""
                end = f"; kill {pid[1]} ends them" if pid else ""
                raise Refused(
                    f"jobs of {home} still run under its node agent{named}:"
                    f" wait until they have ended{end}"
                ) from None
    except FileNotFoundError:
        return
