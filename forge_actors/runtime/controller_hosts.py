"""The hosts of controllers: ours, and those that are installed."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, cast

from forge_actors.domain.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.controller_hosts import ControllerHost
    from forge_actors.runtime.process_host import ProcessHost

#: The group of entry points that name hosts: each is a class without arguments.
GROUP = "forge_actors.controller_hosts"
REQUIRED = ("name", "resumes", "check", "resume", "found")


class Hosts:
    """Finds one by its name; it is loaded when it is first asked for."""

    def __init__(self, process: ProcessHost) -> None:
        self._process = process

    def __call__(self, name: str) -> ControllerHost:
        """
        Raises:
            InvalidInput: there is none. Refused: it cannot be loaded.
        """
        if name == self._process.name:
            return self._process
        point = _entry_points().get(name)
        if point is None:
            known = tuple(sorted({self._process.name, *_entry_points()}))
            raise InvalidInput("host", f"{name!r} is no known host", allowed=known)
        return _loaded(point)


@cache
def _entry_points() -> Mapping[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=GROUP)}


@cache
def _loaded(point: EntryPoint) -> ControllerHost:
    where = f"the controller host {point.name!r} ({point.value})"
    try:
        made = point.load()()
        lacking = [name for name in REQUIRED if not hasattr(made, name)]
    except Exception as error:  # it is somebody else's code
        raise Refused(f"{where} cannot be loaded: {error}") from error
    if lacking:
        raise Refused(f"{where} cannot be used: it has no {', '.join(lacking)}")
    return cast("ControllerHost", made)
