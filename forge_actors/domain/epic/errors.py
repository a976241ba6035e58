"""What keeps an EPIC from being run."""

from __future__ import annotations

from forge_actors.domain.errors import ForgeError, Refused


class StateError(ForgeError):
    """A file of an EPIC run is not what it has to be."""

    code = "EPIC_STATE"


class LockFailed(Refused):
    """There is no lock of a controller here."""

    code = "LOCK_FAILED"


class LockHeld(Refused):
    """Another scheduler has this repository, or a worker of an earlier one lives."""

    code = "LOCK_HELD"


class Busy(ForgeError):
    """Another process has this issue now."""

    code = "BUSY"


class UnsupportedFilesystem(ForgeError):
    """The file system of the repository does not keep locks."""

    code = "UNSUPPORTED_FILESYSTEM"
    exit_code = 4
