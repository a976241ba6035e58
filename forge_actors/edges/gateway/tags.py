"""Tags of answers: whether what a client has is still what there is."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.edges.gateway.messages import Response

if TYPE_CHECKING:
    from forge_actors.edges.gateway.messages import Request

IF_MATCH = "if-match"
IF_NONE_MATCH = "if-none-match"


def tag_of(answer: Response) -> str:
    """What is the same for the same body, and for no other one."""
    return f'"{hashlib.blake2b(answer.body, digest_size=12).hexdigest()}"'


def tagged(answer: Response, request: Request) -> Response:
    """The answer with its tag, and without its body if the client has that one."""
    tag = answer.headers.get("etag") or tag_of(answer)
    headers = {**answer.headers, "etag": tag}
    known = request.headers.get(IF_NONE_MATCH)
    if known is not None and matches(known, tag):
        return Response(304, headers=headers)
    return structs.replace(answer, headers=headers)


def with_steady_tag(answer: Response, steady: Response) -> Response:
    """The answer with the tag of another one: what is told in it only differs in ages.

    Without that no client would ever have what there is.
    """
    headers = {**answer.headers, "etag": f"W/{tag_of(steady)}"}
    return structs.replace(answer, headers=headers)


def matches(known: str, tag: str) -> bool:
    """Whether a header such as `"a", W/"b"` or `*` means this tag."""
    words = [word.strip().removeprefix("W/") for word in known.split(",")]
    return "*" in words or tag.removeprefix("W/") in words
