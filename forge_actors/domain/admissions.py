"""Admission: the last word on a job that has its tokens, before its process begins.

Some jobs were queued as candidates only: whether such a one may begin, with what
command and with which open descriptors, is found out at that moment, and anew for each
attempt. One that is not admitted has no process and is cancelled.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from forge_actors.domain.descriptors import Descriptors
    from forge_actors.domain.launch import LaunchOrder, ProcessIdentity, Receipt

#: The error of a job that was not.
NOT_ADMITTED = "NOT_ADMITTED"


class AdmissionWanted(Struct, frozen=True):
    """Whom to ask: what the job is of, and as what of that it is a candidate."""

    work: str
    issue: int


class Admitted(NamedTuple):
    """What its process begins as. The variables come to those of its order."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    descriptors: Descriptors | None
    #: Told of its process, once that runs.
    began: Callable[[ProcessIdentity], object]
    #: Told of its end, in any case and once, unless this runtime ends before: it may
    #: never have begun.
    ended: Callable[[Receipt], object]
    #: More variables, as those of `LaunchOrder.secrets`.
    secrets: Mapping[str, str] = MappingProxyType({})


class NotAdmitted(NamedTuple):
    """Why not, in one sentence."""

    reason: str


class Admissions(Protocol):
    """Says which candidates may begin."""

    async def admit(self, order: LaunchOrder) -> Admitted | NotAdmitted:
        """Whether the job of this order may begin now; it may take a while to find out.

        Cancelled or failed, nothing is open. Once it has returned the descriptors are
        the caller's, who gives them to a launcher or closes them.

        Raises:
            ForgeError: it could not be found out, so the job is not admitted.
        """
