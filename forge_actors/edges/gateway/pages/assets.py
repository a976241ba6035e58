"""The files that the pages are made of, as they are sent to a browser."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files

from msgspec import Struct

#: What a file is, by how its name ends; a file of any other kind is not sent.
TYPES = {
    "css": "text/css; charset=utf-8",
    "html": "text/html; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}


class Asset(Struct, frozen=True):
    """One file; its tag changes with each byte of it."""

    body: bytes
    content_type: str
    tag: str


@cache
def assets() -> dict[str, Asset]:
    """Every file by its name, read once and kept: a request never names a path."""
    found = {}
    for file in files(__package__).joinpath("static").iterdir():
        kind = TYPES.get(file.name.rpartition(".")[2])
        if kind is not None:
            body = file.read_bytes()
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            found[file.name] = Asset(body, kind, tag)
    return found
