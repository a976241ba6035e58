"""What is kept of one issue, and what that means for the next worker: pure.

Only what is known to be wrong makes a namespace uncertain; then nothing is written to
it, and people decide.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from msgspec import Struct

from forge_actors.domain.epic.records import (
    ABSENT,
    SETTLED,
    Binding,
    Claim,
    EngineState,
    EpicRef,
    Phase,
    StateRef,
    detail,
    digest_of,
)
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.places import parse_issue_url

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Claims that one issue may have.
MAX_CLAIMS = 1000
#: Who owns the repository that stands for a plan: its issues are named by the file and
#: their number, `plan.toml#3`.
PLAN_OWNER = "plan"

Kind: TypeAlias = Literal["absent", "fresh", "resumable", "settled", "uncertain"]


class Saved(Struct, frozen=True):
    """The state of the engine, with the bytes that it was read from."""

    data: bytes
    state: EngineState

    @property
    def ref(self) -> StateRef:
        """What a claim says that goes on from it."""
        state = self.state
        return StateRef(
            "present",
            digest_of(self.data),
            state.phase,
            state.run_id,
            state.updated_at,
        )


class Namespace(Struct, frozen=True):
    """One issue's files, each strictly read; the whole of them is judged by
    `classify`."""

    issue: int
    #: Whether there is anything but the lock.
    found: bool = False
    binding: Binding | None = None
    saved: Saved | None = None
    #: By their generation.
    claims: tuple[Claim, ...] = ()
    #: Why it could not be read; then any of the above may be missing.
    problem: str | None = None

    @property
    def latest(self) -> Claim | None:
        return self.claims[-1] if self.claims else None

    @property
    def open_claim(self) -> Claim | None:
        """The claim that still counts. Of two open ones that is the later."""
        latest = self.latest
        return None if latest is None or latest.closed is not None else latest

    @property
    def outrun(self) -> tuple[Claim, ...]:
        """Open claims that later ones have taken over from: a crash left them so."""
        return tuple(each for each in self.claims[:-1] if each.closed is None)

    @property
    def next_generation(self) -> int:
        return 1 if self.latest is None else self.latest.generation + 1

    @property
    def state_ref(self) -> StateRef:
        return ABSENT if self.saved is None else self.saved.ref

    def is_of_another(self, epic: EpicRef) -> bool:
        """Whether it belongs to another EPIC: then it is none of this one's."""
        return self.binding is not None and self.binding.epic != epic


class Expected(Struct, frozen=True):
    """What the server says that the repository and its issues are."""

    repository_id: int
    owner: str
    name: str
    #: Ids by number, of the issues that are known; others are not compared.
    issue_ids: Mapping[int, int] = {}

    def is_named(self, owner: str, name: str) -> bool:
        """Whether that is its name; GitHub takes no notice of case."""
        return (owner.lower(), name.lower()) == (self.owner.lower(), self.name.lower())


class Classification(Struct, frozen=True):
    """What is to be made of a namespace.

    *absent* and *fresh* ones begin anew, *resumable* ones go on from `state_ref`,
    *settled* ones are left alone, and *uncertain* ones not even written to.
    """

    kind: Kind
    #: One line for people, without secrets.
    detail: str = ""
    #: The claim that still counts, if it is open.
    open_claim: Claim | None = None
    #: Of a settled one: where the work came to rest.
    settlement: Phase | None = None
    #: What the next claim goes on from.
    state_ref: StateRef = ABSENT


def classify(namespace: Namespace, expected: Expected) -> Classification:
    """By what is on the disk and known of the issue. Of which EPIC it is, is asked
    before: see `Namespace.is_of_another`."""
    if not namespace.found and namespace.problem is None:
        return Classification("absent", "nothing is kept of it")
    claim = namespace.open_claim
    why = (
        namespace.problem
        or _owner_problem(namespace, expected)
        or claims_problem(namespace.binding, namespace.claims)
        or _state_problem(namespace, expected)
    )
    if why is not None:
        return Classification("uncertain", detail(why), claim)
    if namespace.saved is None:
        return Classification("fresh", "no state was saved yet", claim)
    phase = namespace.saved.state.phase
    ref = namespace.saved.ref
    if phase in SETTLED:
        told = detail(f"settled: {phase}")
        return Classification("settled", told, claim, phase, ref)
    return Classification("resumable", f"its work is at {phase}", claim, None, ref)


def binding_problem(binding: Binding, issue: int, expected: Expected) -> str | None:
    """What is known to be wrong with the owner of a namespace, if anything is."""
    key = binding.run_key
    if key.issue_number != issue:
        return f"its binding is that of issue {key.issue_number}"
    if key.repository_id != expected.repository_id:
        return (
            f"its binding is of the repository with the id {key.repository_id}; this"
            f" one has {expected.repository_id}"
        )
    known = expected.issue_ids.get(issue)
    if known is not None and known != binding.issue_id:
        return (
            f"its binding is of the issue with the id {binding.issue_id}; number"
            f" {issue} now has {known}"
        )
    return None


def _owner_problem(namespace: Namespace, expected: Expected) -> str | None:
    if namespace.binding is not None:
        return binding_problem(namespace.binding, namespace.issue, expected)
    if namespace.saved is not None:
        return "there is a state, but nothing that says whose it is"
    if namespace.claims:
        return "there are claims, but nothing that says whose they are"
    return None


def claims_problem(binding: Binding | None, claims: tuple[Claim, ...]) -> str | None:
    """What is wrong with the claims of an issue among themselves, if anything is."""
    if len({each.claim_id for each in claims}) != len(claims):
        return "two claims have the same id"
    before: Claim | None = None
    for generation, claim in enumerate(claims, start=1):
        why = _claim_problem(binding, claim, generation, before)
        if why is not None:
            return why
        before = claim
    return None


def _claim_problem(
    binding: Binding | None, claim: Claim, generation: int, before: Claim | None
) -> str | None:
    number = claim.generation
    if number != generation:
        return f"claim {generation} is missing: the next one is {number}"
    if binding is not None:
        owner = (binding.run_key, binding.issue_id, binding.epic)
        if (claim.run_key, claim.issue_id, claim.epic) != owner:
            return f"claim {number} is about something else than the binding"
    if (claim.kind == "resume") != (claim.state_ref.kind == "present"):
        return f"claim {number} is a {claim.kind}, but not by the state it names"
    named = None if before is None else before.ref
    if claim.supersedes is not None and claim.supersedes != named:
        return f"claim {number} takes over from one that is not there"
    if before is not None and before.closed is None and claim.supersedes is None:
        return f"claim {before.generation} is open although {number} is there"
    return None


def _state_problem(namespace: Namespace, expected: Expected) -> str | None:
    binding, saved, latest = namespace.binding, namespace.saved, namespace.latest
    ref = ABSENT if latest is None else latest.state_ref
    if saved is None:
        gone = ref.kind == "present"
        return "the state that its claim goes on from is gone" if gone else None
    state = saved.state
    if binding is not None and state.run_key != binding.run_key:
        return "its state is that of another issue"
    if (why := _url_problem(namespace, expected, state.issue_url)) is not None:
        return why
    if ref.kind == "absent":
        return None
    if ref.run_id not in (None, state.run_id):
        return "its state is that of another run than its claim goes on from"
    older = ref.updated_at is not None and _at(state.updated_at) < _at(ref.updated_at)
    if older and ref.digest != digest_of(saved.data):
        return "its state is older than the one that its claim goes on from"
    return None


def _url_problem(namespace: Namespace, expected: Expected, url: str) -> str | None:
    if expected.owner == PLAN_OWNER and "://" not in url:
        of_it = url.endswith(f"#{namespace.issue}")
        return None if of_it else "its state is about another issue of a plan"
    try:
        at = parse_issue_url(url)
    except InvalidInput:
        return "its state names no issue"
    named = Expected(0, at.place.owner, at.place.name)
    binding = namespace.binding
    # A repository may have been renamed since it was bound, or since the state began.
    here = named.is_named(expected.owner, expected.name) or (
        binding is not None and named.is_named(binding.owner, binding.name)
    )
    if not here or at.number != namespace.issue:
        return f"its state is about {at}"
    return None


def _at(moment: str) -> str:
    """A moment so that text sorts as time does."""
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    return f"{whole}.{fraction:0<6}"
