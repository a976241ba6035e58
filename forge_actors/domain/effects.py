"""Effects: what a job does to the world outside, and whether it may.

A job that a person asked for may do what its command does. One that a schedule, a
workflow, a continuation or the template of a repository began may do no more to the
outside than a person has allowed in its definition or for that job; and so may the jobs
that it submits itself.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal, get_args

from msgspec import Struct, structs

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: `push`: commits for a remote repository. `merge`: a change into a branch of others.
#: `pull_request`, `issue`: these are made or changed. `release`, `publish`, `deploy`:
#: something is out for users. `database`: data is removed. `remote`: anything else.
Effect = Literal[
    "push",
    "merge",
    "pull_request",
    "issue",
    "release",
    "publish",
    "deploy",
    "database",
    "remote",
]
EFFECTS: tuple[Effect, ...] = get_args(Effect)

#: Origins that stand for no person; what they began is behind a colon.
AUTOMATED = frozenset({"schedule", "workflow", "continuation", "template"})
#: Before the id of the job that submitted another one.
OF_JOB = "job:"
#: Refused commands of one attempt that are told.
MAX_REFUSED = 100

#: What the text of a command plainly says that it does. From one program only to the
#: next of the same name: a long command of somebody's is to take no longer than it is.
_PLAIN: dict[Effect, str] = {
    "push": r"\bgit\b((?!\bgit\b)[^;&|\n])*\s(push|send-pack)\b",
    "merge": r"\bgh\s+pr\s+merge\b",
    "pull_request": r"\bgh\s+pr\s+(create|close|edit|ready|reopen)\b",
    "issue": r"\bgh\s+issue\s+(create|close|edit|reopen|delete)\b",
    "release": r"\bgh\s+release\s+(create|delete|edit|upload)\b",
    "publish": r"\b((npm|pnpm|yarn|cargo|poetry|uv|hatch|flit)\s+publish|twine\s+upload"
    r"|gem\s+push|docker\s+push|podman\s+push|mvn\b((?!\bmvn\b)[^;&|\n])*\sdeploy)\b",
    "deploy": r"\b(kubectl\s+(apply|create|delete|replace|patch|scale|rollout)"
    r"|helm\s+(install|upgrade|uninstall|rollback)"
    r"|(terraform|tofu|pulumi)\s+(apply|destroy|up))\b",
    "database": r"\b(drop\s+(table|database|schema)|truncate\s+table|delete\s+from"
    r"|dropdb)\b",
}
_SHOWN = {
    effect: re.compile(pattern, re.IGNORECASE) for effect, pattern in _PLAIN.items()
}


class Approval(Struct, frozen=True):
    """A person has allowed effects of this job: who, how, and when."""

    job: str
    effects: tuple[Effect, ...]
    by: str
    how: str
    at: float


class Authority(Struct, frozen=True, omit_defaults=True):
    """What a job says that it does to the outside, and what of that it may do.

    A job without one is a person's, and says nothing.
    """

    #: No person asked for it; `began` is what did.
    automated: bool = False
    began: str = ""
    declared: tuple[Effect, ...] = ()
    #: What its definition, or the job that submitted it, may do.
    authorised: tuple[Effect, ...] = ()
    #: Of this job, or of one that it was made from.
    approvals: tuple[Approval, ...] = ()


class RefusedEffect(Struct, frozen=True):
    """A command of a job that was kept from running."""

    effect: Effect
    command: str


class Submitter(Struct, frozen=True):
    """The job that asks for another one."""

    job: str
    authority: Authority | None
    #: What it is of, and with it what it submits.
    work: str | None = None


def is_automated(origin: str) -> bool:
    return origin.partition(":")[0] in AUTOMATED


def job_of(origin: str) -> str | None:
    """The job that an origin names."""
    return origin.removeprefix(OF_JOB) if origin.startswith(OF_JOB) else None


def in_order(effects: Iterable[str]) -> tuple[Effect, ...]:
    """Each once, in the order in which all are named."""
    known = frozenset(effects)
    return tuple(effect for effect in EFFECTS if effect in known)


def shown(argv: Iterable[object]) -> tuple[Effect, ...]:
    """What a command plainly does to the outside. Much is not plain."""
    text = " ".join(map(str, argv))
    return in_order(e for e, pattern in _SHOWN.items() if pattern.search(text))


def allowed(authority: Authority | None, job: str) -> tuple[Effect, ...] | None:
    """What a job may do to the outside; None: whatever its command does."""
    if authority is None or not authority.automated:
        return None
    approved = (a.effects for a in authority.approvals if a.job == job)
    return in_order({*authority.authorised, *(e for some in approved for e in some)})


def held_back(authority: Authority | None, job: str) -> tuple[Effect, ...]:
    """What a job says that it does and may not: it waits until a person allows it."""
    may = allowed(authority, job)
    if authority is None or may is None:
        return ()
    return tuple(effect for effect in authority.declared if effect not in may)


def authority_of(
    origin: str,
    declared: Sequence[Effect],
    authorised: Sequence[Effect],
    submitter: Submitter | None,
    argv: Iterable[object],
) -> Authority | None:
    """That of a new job. What a job submits has at most the authority of that job."""
    above = None if submitter is None else allowed(submitter.authority, submitter.job)
    if above is not None:
        assert submitter is not None, "it has the authority of one"
        assert submitter.authority is not None, "a person's may do everything"
        began, may = submitter.authority.began, above
    elif is_automated(origin):
        began, may = origin, in_order(authorised)
    else:
        return Authority(declared=in_order(declared)) if declared else None
    does = in_order((*declared, *shown(argv)))
    return Authority(automated=True, began=began, declared=does, authorised=may)


def beyond(authorised: Sequence[Effect], submitter: Submitter) -> tuple[Effect, ...]:
    """What a job would allow another one and may not do itself."""
    above = allowed(submitter.authority, submitter.job)
    return () if above is None else in_order(set(authorised) - set(above))


def again(
    old: Authority | None,
    job: str,
    submitter: Submitter | None,
    argv: Iterable[object],
    origin: str = "",
) -> Authority | None:
    """That of a job that does again what another one did, or goes on with it.

    Nothing is widened, whoever asks for it: an approval was for that job. What no
    person asks for has no more than was allowed to whatever it goes on with.
    """
    if is_automated(origin) and (old is None or not old.automated):
        declared = () if old is None else old.declared
        return authority_of(origin, declared, (), None, argv)
    above = None if submitter is None else allowed(submitter.authority, submitter.job)
    if above is None:
        return old
    assert submitter is not None, "it has the authority of one"
    assert submitter.authority is not None, "a person's may do everything"
    may = above
    if (mine := allowed(old, job)) is not None:
        may = tuple(effect for effect in above if effect in mine)
    does = in_order((*(() if old is None else old.declared), *shown(argv)))
    began = submitter.authority.began
    return Authority(automated=True, began=began, declared=does, authorised=may)


def approved(authority: Authority | None, approval: Approval) -> Authority:
    """The same with what a person allows from now on."""
    authority = authority or Authority()
    return structs.replace(authority, approvals=(*authority.approvals, approval))
