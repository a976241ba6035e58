"""What the clean-up program and the owner of the store say, one JSON object a line.

The owner says one `CleanOrder` and then only answers. The program says which class it
visits, asks for what only the owner may do, one question at a time, and tells what it
has removed. Both take nothing else from each other.
"""

from __future__ import annotations

import os
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, structs

from forge_actors.domain.cleaning import ClassReport, CleanClass, Removal, Skip
from forge_actors.domain.maintenance import MAX_ASKED, CleanOrder
from forge_actors.domain.worktrees import Worktree

#: Bytes of one line, in either direction.
MAX_LINE = 1 << 20
#: Removals and skips told at once.
MAX_TOLD = 200

JobId = Annotated[str, Meta(min_length=1, max_length=64)]


class _Said(Struct, tag_field="op", forbid_unknown_fields=True, omit_defaults=True):
    pass


class Visiting(_Said, tag="visiting"):
    """A visit begins, once this is answered with where the last one stopped."""

    clean_class: CleanClass


class Visited(_Said, tag="visited"):
    report: ClassReport


class ForgetJobs(_Said, tag="forget_jobs"):
    jobs: Annotated[list[JobId], Meta(max_length=MAX_ASKED)]


class ForgetEvents(_Said, tag="forget_events"):
    before: Annotated[int, Meta(ge=0)]


class Record(_Said, tag="record"):
    worktree: Worktree
    step: Annotated[str, Meta(max_length=4096)]


class Upkeep(_Said, tag="upkeep"):
    pass


class Told(_Said, tag="told"):
    """What was removed, and what stays. Not answered."""

    removals: Annotated[list[Removal], Meta(max_length=MAX_TOLD)] = []
    skips: Annotated[list[Skip], Meta(max_length=MAX_TOLD)] = []


class Done(_Said, tag="done"):
    """Nothing more comes, and the program ends. `error` says why that is too early."""

    error: str | None = None


Question = Visiting | Visited | ForgetJobs | ForgetEvents | Record | Upkeep
Said = Question | Told | Done


class Answer(_Said, tag="answer"):
    """It is done, and durable; the field that the question was for says how far."""

    jobs: list[str] = []
    count: int = 0
    cursor: str | None = None


class Declined(_Said, tag="declined"):
    """It is not done."""

    error: str


Heard = Answer | Declined

encode = msgspec.json.Encoder().encode
decode_said = msgspec.json.Decoder(Said).decode
decode_heard = msgspec.json.Decoder(Heard).decode
_decode_order = msgspec.json.Decoder(CleanOrder).decode


def encode_order(order: CleanOrder) -> bytes:
    """An order, as a line without its end. Paths need not be UTF-8, but JSON must."""
    home = os.fsencode(order.request.home).decode("latin-1")
    request = structs.replace(order.request, home=home)
    return encode(structs.replace(order, request=request))


def decode_order(line: bytes) -> CleanOrder:
    """What `encode_order` made.

    Raises:
        msgspec.DecodeError: it is something else.
    """
    order = _decode_order(line)
    home = os.fsdecode(order.request.home.encode("latin-1"))
    return structs.replace(order, request=structs.replace(order.request, home=home))


def printable(text: str) -> str:
    """The name of a file as text that JSON can hold."""
    return os.fsencode(text).decode("utf-8", "replace")
