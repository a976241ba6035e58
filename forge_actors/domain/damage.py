"""A store that was found damaged: what is kept of that, and how it is told.

Standard library only, as clients need it.
"""

from __future__ import annotations

import json
from typing import NamedTuple

#: This file in a home says that its store was set aside: nothing starts while it is
#: there, so that a damaged store never becomes an empty queue by itself.
MARKER = "store.damaged"
#: What was damaged is moved to this folder of the home. The newest is never deleted.
FOLDER = "damaged"


class SetAside(NamedTuple):
    """What the marker says; `at` is seconds of the wall clock, `place` inside the home.

    `place` is empty where there was no file to set aside.
    """

    reason: str
    place: str
    at: float


def write_marker(found: SetAside) -> bytes:
    return json.dumps(found._asdict()).encode() + b"\n"


def read_marker(text: bytes) -> SetAside:
    """What a marker says; one that nobody can read says only that it is there."""
    try:
        told = json.loads(text)
        return SetAside(str(told["reason"]), str(told["place"]), float(told["at"]))
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        return SetAside(f"{MARKER} is there", "", 0.0)


def told(home: str, found: SetAside) -> str:
    """The one sentence for everybody who wants the store."""
    aside = f" and was set aside as {found.place}" if found.place else ""
    return (
        f"the store of {home} is damaged ({found.reason}){aside}; nothing starts here"
        f" until you choose: {ways_on(home)}"
    )


def ways_on(home: str) -> str:
    """What a person can do about it."""
    verb = f"forge-actors restore --home {home}"
    return (
        f"'{verb} FILE' (a backup), '{verb} --salvage' (what can still be read),"
        f" or '{verb} --empty' (begin anew)"
    )
