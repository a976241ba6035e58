"""Artifacts: files of a job's folder that are kept when it has ended.

Which ones a job says in patterns. Each is relative to the folder the job runs in; its
parts are matched one by one: `*`, `?` and `[…]` within a name, `**` any folders. What a
pattern names is taken, of a folder all that is in it.
"""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.errors import InvalidInput, StoreFailed

MAX_PATTERNS = 32
MAX_PATTERN_LENGTH = 1024
#: Version of the manifest that is read here.
VERSION = 1
#: Why a pattern that meant nothing is among what was left out.
UNMATCHED = "nothing matches it"
#: Longest manifest, in bytes.
MAX_MANIFEST = 64 << 20


class ArtifactFile(Struct, frozen=True):
    """One file as it was collected."""

    #: Below the folder the job ran in.
    path: str
    bytes: int
    sha256: str
    executable: bool = False


class LeftOut(Struct, frozen=True):
    """Something that a pattern means and that was not collected."""

    path: str
    reason: str


class CollectedFile(ArtifactFile, frozen=True):
    """The same with the name under which it is kept."""

    name: str = ""


class Manifest(Struct, frozen=True):
    """What one attempt left, written when all of it is there."""

    version: int
    files: list[CollectedFile]
    left_out: list[LeftOut] = []
    #: How many more were left out than are named.
    left_out_more: int = 0


class Artifacts(Struct, frozen=True):
    """What was collected of one attempt, as readers see it.

    `state`: `complete`; `partial`, something was left out; `incomplete`, it was not
    collected to the end and nothing of it is kept; `removed`, it is kept no more.
    """

    attempt: int
    state: str
    files: list[ArtifactFile] = []
    bytes: int = 0
    left_out: list[LeftOut] = []
    left_out_more: int = 0
    #: Why there is nothing.
    error: str | None = None


def check_glob(pattern: str, *, field: str = "artifacts") -> str:
    """`pattern`, if it can only mean something in the folder of the job.

    Raises:
        InvalidInput: it may not be one.
    """
    if not 0 < len(pattern) <= MAX_PATTERN_LENGTH or "\0" in pattern:
        raise InvalidInput(
            field, f"a pattern has 1 to {MAX_PATTERN_LENGTH} characters, no NUL"
        )
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if pattern.startswith(("/", "~")) or ".." in parts or not parts:
        raise InvalidInput(
            field, f"{pattern!r} leads out of the job's folder: write it relative to it"
        )
    return "/".join(parts)


def check_path(path: str) -> str:
    """The path of a collected file, if it can lead nowhere else.

    Raises:
        StoreFailed: whoever wrote the manifest wants it to.
    """
    parts = path.split("/")
    if not path or "\0" in path or any(part in ("", ".", "..") for part in parts):
        raise StoreFailed(f"a collected file has the path {path[:100]!r}")
    return path
