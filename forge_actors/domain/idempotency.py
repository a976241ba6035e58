"""Keys of requests that may come twice: their jobs are made once, whoever repeats them.

Such a key becomes the request ids of the jobs, which are saved with them: the answer
may be lost, the service may crash, and a repetition still finds what was made.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput, Refused

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from forge_actors.domain.requests import JobRequest

HEADER = "idempotency-key"
_KEY = re.compile(r'(?P<quote>"?)(?P<key>[!#-\[\]-~]{1,128})(?P=quote)')


def key_of(text: str | None) -> str | None:
    """The key that a header has, which may be quoted.

    Raises:
        InvalidInput: it is none.
    """
    if text is None:
        return None
    found = _KEY.fullmatch(text)
    if found is None:
        raise InvalidInput(HEADER, "has to be 1 to 128 printable characters of ASCII")
    return found["key"]


def keyed(requests: Sequence[JobRequest], key: str) -> None:
    """Give the jobs of one request the ids that stand for its key.

    Raises:
        InvalidInput: one has an id of its own.
    """
    for place, request in enumerate(requests):
        if request.request_id is not None:
            raise InvalidInput(
                HEADER, "stands for request_id, which one of the jobs has too"
            )
        request.request_id = _id(key, place)


def check_whole(
    requests: Sequence[JobRequest], key: str, known: Callable[[str], bool]
) -> None:
    """Refuse a key that stood for more jobs, or for fewer.

    That each job is the same one as before is seen by its request id. A job that was
    there already by its `unique` key has none here.

    Raises:
        Refused: as it says.
    """
    count = len(requests)
    own = [place for place in (0, count - 1) if requests[place].unique is None]
    found = {known(_id(key, place)) for place in own}
    if len(found) > 1 or known(_id(key, count)):
        raise Refused(f"{HEADER}: {key!r} belongs to another number of jobs")


def _id(key: str, place: int) -> str:
    return f"{key}#{place}" if place else key
