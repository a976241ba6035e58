"""The ports of an EPIC run to its files and locks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from forge_actors.domain.epic.places import Place


class Entry(Struct, frozen=True, order=True):
    """One name in a folder. A link is `other`, wherever it leads."""

    name: str
    kind: Literal["file", "folder", "other"]


class Root(Protocol):
    """The files below one open folder, and no others: no link is ever followed.

    A file is a regular one that has one name. Whatever else is in the way, as what is
    read or in what leads to it, is a StateError, and so is every other failure; none
    waits for anybody.
    """

    def read(self, place: Place, limit: int) -> bytes | None:
        """All of a file, of `limit` bytes at most; None if it, or its folder, is not
        there."""

    def write(self, place: Place, content: bytes) -> None:
        """Have the file be this, durably: it is what it was before or all of this.

        Folders that are not there are made.
        """

    def create(self, place: Place, content: bytes) -> None:
        """The same for a file that must not be there yet.

        That is for those who hold a lock meanwhile: nobody else writes there.
        """

    def append(self, place: Place, limit: int) -> int:
        """Open a file, made if need be, to write at its end: the caller closes it.

        One that has `limit` bytes or more by now is refused.
        """

    def entries(self, place: Place) -> list[Entry] | None:
        """What is in a folder, by name, without unfinished files; None if there is no
        such folder."""

    def remove(self, place: Place) -> bool:
        """Remove a file durably; False if there was none."""

    def move(self, place: Place, name: str) -> bool:
        """Give what is in a place, whatever it is, another name there, durably; False
        if nothing is. A name that is taken is refused."""


class ControllerLock(Protocol):
    """The right to admit issues of a repository. It is never given back but by closing.

    An explicit unlock would end it for every worker that has the descriptor too.
    """

    def share(self) -> int:
        """The descriptor that workers inherit, open until `close`.

        It stays close-on-exec here, so that nobody else inherits it.
        """

    def close(self) -> None:
        """Let go of it here: it is free once the last worker is gone. May be called
        again."""


class RunLock(Protocol):
    """The right to touch what is kept of one issue."""

    @property
    def issue(self) -> int: ...

    @property
    def held(self) -> bool:
        """Whether this was not let go of yet, here; handed off or not."""

    def hand_off(self) -> int:
        """The descriptor for the worker; from here on `close` only closes.

        It stays close-on-exec here, so that nobody else inherits it.
        """

    def close(self) -> None:
        """Let go of it: at once, or, once handed off, as far as this process goes. May
        be called again.

        A folder that was only made for the lock goes with it.
        """


class Locks(Protocol):
    """The locks of one repository. The controller's comes first, then one of an issue
    at a time."""

    def take_controller(self) -> ControllerLock:
        """Become its only controller, or fail and have written nothing.

        Raises:
            LockHeld: somebody is, or a worker of an earlier one lives.
            UnsupportedFilesystem: locks are not kept on its file system.
            StateError: it cannot be taken for another reason.
        """

    def take_run(self, issue: int) -> RunLock:
        """Take the lock of an issue, on a descriptor of its own.

        Raises:
            Busy: somebody has it, this process included.
            StateError: it cannot be taken for another reason.
        """

    def controller(self) -> Holder | None:
        """Who the controller is, by what can be seen without a lock or a file; None if
        nobody is known to be."""

    def is_busy(self, issue: int) -> bool:
        """Whether somebody has the lock of an issue; it is taken for that moment, and
        not made.

        Raises:
            StateError: nobody can tell.
        """


class Holder(Struct, frozen=True):
    """Who has the lock of a repository's controller."""

    #: None where that was not recorded.
    pid: int | None
    #: It is not seen to run any more, and what it started has the lock.
    ended: bool = False
