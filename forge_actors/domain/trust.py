"""Trust: what a person has taken over of the files that a repository brings along.

What is trusted is their content, which the home keeps. The files in the checkout may
say something else by now; that changes nothing until a person takes it over too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Struct

from forge_actors.domain.effects import Effect
from forge_actors.domain.errors import InvalidInput, Refused
from forge_actors.domain.events import Event
from forge_actors.domain.forge_files import (
    FOLDER,
    ForgeFile,
    digest_of,
)
from forge_actors.domain.templates import TemplateView
from forge_actors.domain.timestamps import timestamp

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

#: What the schedules of a repository come from: this, and its id.
SOURCE = "trust:"
#: `none`: there is nothing, and nothing is trusted.
TrustWord = Literal["none", "untrusted", "trusted", "differs"]
FileChange = Literal["same", "new", "changed", "gone"]
ScheduleChange = Literal["unchanged", "added", "changed", "removed"]


class Differs(Struct, frozen=True, omit_defaults=True):
    """That the files say something else than what is trusted."""

    #: Of what they say; or what is wrong with them.
    digest: str
    problem: str | None
    #: Names of the files.
    files: tuple[str, ...]
    #: Seconds since 1970, UTC, when that was seen first.
    seen: float


class Trusted(Struct, frozen=True):
    """What is trusted of one repository."""

    repo: str
    #: Counts what was taken over.
    revision: int
    files: tuple[ForgeFile, ...]
    #: What jobs that say so may do to the outside.
    authorised: tuple[Effect, ...]
    #: Seconds since 1970, UTC, by the wall clock.
    taken: float

    @property
    def digest(self) -> str:
        return digest_of(self.files)


class Found(Struct, frozen=True):
    """What is in the folder now, or what is wrong with it."""

    files: tuple[ForgeFile, ...] = ()
    problem: str | None = None
    #: The whole checkout is not where it should be.
    gone: bool = False

    @property
    def digest(self) -> str:
        return digest_of(self.files)


class TrustedFile(Struct, frozen=True):
    """A file that is there, or that is trusted."""

    name: str
    change: FileChange
    #: In 64 hex digits; null: it is gone.
    digest: str | None
    text: str | None
    #: As it is trusted; null: it is not.
    before: str | None


class PlannedSchedule(Struct, frozen=True):
    """A schedule of the files, and what trusting them makes of it."""

    name: str
    change: ScheduleChange
    trigger: str
    job: dict[str, Any]


class BroughtWorkflow(Struct, frozen=True):
    """A workflow, and the name of its file."""

    name: str
    file: str


class TrustedRun(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A trusted workflow to begin, as a file of one is."""

    parameters: dict[str, str] = {}
    name: str | None = None
    request_id: str | None = None
    dry_run: bool = False


class TrustView(Struct, frozen=True):
    """What would be taken over of a repository, and what was."""

    repo: str
    path: str
    state: TrustWord
    #: What is wrong with what is there: it cannot be trusted so.
    problem: str | None
    #: Of what is there, to be named by who trusts it.
    digest: str
    #: Of what is trusted.
    trusted: str | None
    trusted_at: str | None
    authorised: list[str]
    files: list[TrustedFile]
    templates: list[TemplateView]
    schedules: list[PlannedSchedule]
    workflows: list[BroughtWorkflow]
    #: The secrets that its jobs would get, each of which has to be allowed.
    secrets: list[str]
    #: What its jobs do to the outside, as far as they say so.
    effects: list[str]


class TrustNote(Struct, frozen=True):
    """The same in short."""

    state: TrustWord
    trusted: str | None
    trusted_at: str | None
    #: In a sentence, with what can be done.
    says: str


class TrustRequest(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """What a person trusts: the content with this digest and no other."""

    digest: str
    authorised: list[str] = []
    #: Secrets that its jobs may get, by name.
    secrets: list[str] = []


_decoder = msgspec.json.Decoder(Trusted)
_differs = msgspec.json.Decoder(Differs)


def encoded(trusted: Trusted | Differs) -> bytes:
    return msgspec.json.encode(trusted)


def trusted_from(body: bytes) -> Trusted:
    return _decoder.decode(body)


def differs_from(body: bytes) -> Differs:
    return _differs.decode(body)


def source_of(repo: str) -> str:
    """What the schedules of a repository with this id come from."""
    return f"{SOURCE}{repo}"


def prefix_of(name: str) -> str:
    """What comes before the name of each schedule of a repository, as schedules of all
    repositories have different names."""
    return f"{name.lstrip('._-') or 'repository'}."


def compare(trusted: Trusted | None, found: Found) -> list[TrustedFile]:
    """The files, by name: those that are there, and those that are trusted."""
    before = {} if trusted is None else {file.name: file for file in trusted.files}
    now = {file.name: file for file in found.files}
    told = []
    for name in sorted({*before, *now}):
        old, new = before.get(name), now.get(name)
        change: FileChange = "same" if old == new else "changed"
        if old is None or new is None:
            change = "new" if old is None else "gone"
        told.append(
            TrustedFile(
                name=name,
                change=change,
                digest=None if new is None else new.digest,
                text=None if new is None else new.text,
                before=None if old is None else old.text,
            )
        )
    return told


def state_of(trusted: Trusted | None, found: Found) -> TrustWord:
    if found.gone:
        return "none" if trusted is None else "trusted"
    if trusted is None:
        return "untrusted" if found.files or found.problem else "none"
    same = found.problem is None and found.digest == trusted.digest
    return "trusted" if same else "differs"


def differing(
    trusted: Trusted, found: Found, known: Differs | None, wall: float
) -> Differs | None:
    """How what is there differs from what is trusted; since when, is kept."""
    if state_of(trusted, found) == "trusted":
        return None
    changed = [each.name for each in compare(trusted, found) if each.change != "same"]
    seen = Differs(found.digest, found.problem, tuple(changed), wall)
    same = known is not None and (known.digest, known.problem) == (
        seen.digest,
        seen.problem,
    )
    return known if same else seen


def note(name: str, state: TrustWord, files: Sequence[str], problem: str | None) -> str:
    """What a reader is told of a repository with this name, in a sentence."""
    trust = f"forge-actors repo trust {name}"
    match state:
        case "none":
            return f"there is no {FOLDER}/*.toml"
        case "trusted":
            return f"{FOLDER}/*.toml is what was trusted"
        case "untrusted":
            return f"{FOLDER}/*.toml is there and nobody has trusted it: {trust}"
        case "differs":
            what = problem or f"other than what was trusted: {', '.join(files)}"
            return f"{FOLDER}/*.toml is {what}; see {trust} --show"


def stored_note(name: str, trusted: Trusted, differs: Differs | None) -> TrustNote:
    """The same of what is stored, where nobody looks at the files."""
    state: TrustWord = "trusted" if differs is None else "differs"
    files, problem = ((), None) if differs is None else (differs.files, differs.problem)
    says = note(name, state, files, problem)
    return TrustNote(state, trusted.digest, timestamp(trusted.taken), says)


def check_secrets(asked: Collection[str], allowed: Sequence[str]) -> None:
    """Check that exactly the secrets are allowed that jobs would get.

    Raises:
        Refused: one is not allowed. InvalidInput: one is not asked for.
    """
    missing = sorted(set(asked) - set(allowed))
    if missing:
        options = " ".join(f"--secret {name}" for name in missing)
        raise Refused(
            f"its jobs would get the secrets {', '.join(missing)}, which nobody has"
            f" allowed: {options} does"
        )
    for name in allowed:
        if name not in asked:
            raise InvalidInput("secrets", f"no job of it asks for the secret {name!r}")


def trust_event(
    kind: str, repo: str, name: str, now: float, data: dict[str, object]
) -> Event:
    """Somebody trusts a repository, does so no more, or it differs."""
    return Event(kind, now, repo, data={"name": name, **data})
