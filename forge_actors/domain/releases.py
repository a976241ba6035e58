"""Releases: builds of the program, and which one of them a home lets serve it."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

#: What a start finds. `first`: no release was ever made the active one. `same`: this
#: one is. `replaces`: another one was, at the same place or at one that is gone.
#: `refused`: another one is, and can still be started.
StartVerdict = Literal["first", "same", "replaces", "refused"]

Digest = Annotated[str, Meta(pattern="^[0-9a-f]{64}$")]


class Release(Struct, frozen=True, forbid_unknown_fields=True):
    """One build: its version, the SHA-256 of its files and the folder they are in."""

    version: Annotated[str, Meta(pattern="^[0-9A-Za-z][0-9A-Za-z.+!-]{0,63}$")]
    digest: Digest
    path: Annotated[str, Meta(min_length=1, max_length=4096)]

    @property
    def id(self) -> str:
        """The name of the build, wherever its files are."""
        return f"{self.version}-{self.digest[:16]}"

    def __str__(self) -> str:
        return f"{self.id} ({self.path})"


class ActiveRelease(Struct, frozen=True, forbid_unknown_fields=True):
    """The release that may serve a home, as the home keeps it.

    `revision` grows with each activation. Each also draws a random token, of which
    only the digest is kept: no two are alike, even if an old file was put back.
    """

    format: Literal[1]
    revision: Annotated[int, Meta(ge=1, le=2**53)]
    token_digest: Digest
    #: Seconds of the wall clock.
    activated_at: float
    release: Release
    previous: Release | None

    def is_still(self, now: ActiveRelease) -> bool:
        """Whether nothing was made active since."""
        return self.revision == now.revision and self.token_digest == now.token_digest


class ReleaseCheck(Struct, frozen=True):
    """What a service finds when it looks which release is the active one.

    `release` is its own, `running` how many jobs go on when it hands over.
    """

    release: str
    active: str
    revision: int
    superseded: bool
    running: int


def at_start(
    active: ActiveRelease | None, mine: Release, *, others_exist: bool
) -> StartVerdict:
    """Whether a release may serve, and whether it has to be made the active one first.

    `others_exist`: whether there is still a program where the active one is.
    """
    if active is None:
        return "first"
    if active.release.id == mine.id:
        return "same"
    if active.release.path == mine.path or not others_exist:
        return "replaces"
    return "refused"
