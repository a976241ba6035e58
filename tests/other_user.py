"""Doing something as a user who may not do everything, also where tests run as root."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import traceback
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: The user and the group that have nothing.
NOBODY = 65534


@contextmanager
def place_of_a_user() -> Iterator[Path]:
    """A folder of the user as whom `as_user` acts."""
    place = Path(tempfile.mkdtemp(prefix="forge-user-")).resolve()
    if os.geteuid() == 0:
        os.chown(place, NOBODY, NOBODY)
    try:
        yield place
    finally:
        for folder, _, _ in os.walk(place):
            os.chmod(folder, 0o700)
        shutil.rmtree(place)


def as_user(act: Callable[[], Any]) -> Any:
    """What `act` returns, as JSON has it, when a user without rights calls it."""
    if os.geteuid() != 0:
        return act()
    readable, writable = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            os.write(writable, json.dumps(act()).encode())
            code = 0
        except BaseException:  # noqa: BLE001 - the parent fails instead
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(writable)
    with open(readable, "rb") as file:
        answer = file.read()
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0, "see its standard error"
    return json.loads(answer)
