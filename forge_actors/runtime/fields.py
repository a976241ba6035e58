"""The fields of a request, each checked and given its default.

`prefix` is where the request is in its batch, such as `jobs[3].`; it comes before the
name of the field in every error. All of these raise InvalidInput.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, get_args

from msgspec import UNSET, UnsetType, structs

from forge_actors.domain.artifacts import MAX_PATTERNS, check_glob
from forge_actors.domain.branches import base_problem, check_pattern
from forge_actors.domain.claims import Claim, parse_claim, strongest
from forge_actors.domain.deadlines import (
    default_execution,
    parse_budget,
    parse_duration,
)
from forge_actors.domain.edits import Edit
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.github.watching import OF_AN_ISSUE
from forge_actors.domain.isolation import isolated
from forge_actors.domain.jobs import (
    KINDS,
    READ_ONLY_KINDS,
    REPLAYS,
    Budgets,
    JobSpec,
    Kind,
    Replay,
)
from forge_actors.domain.launch import ProcessLimits
from forge_actors.domain.outputs import check_names
from forge_actors.domain.priority import PRIORITIES
from forge_actors.domain.process_limits import parse_memory, parse_nice, parse_pids
from forge_actors.domain.requests import (
    MAX_LABELS,
    MAX_NAME_LENGTH,
    MAX_SECRETS,
    JobEdit,
    JobRequest,
    decode_argv,
    encode_argv,
    nearest,
)
from forge_actors.domain.rounds import OF_A_GOAL
from forge_actors.domain.sightings import OF_A_CAUSE
from forge_actors.domain.verifying import (
    DEFAULT_ROUNDS,
    DEFAULT_SECONDS,
    MAX_ROUNDS,
    Verify,
)
from forge_actors.domain.worktrees import GIT_PLACES, Isolation
from forge_actors.runtime.exec_size import check_exec_size
from forge_actors.runtime.job_limits import limits_here
from forge_actors.runtime.secrets import check_name

if TYPE_CHECKING:
    from forge_actors.runtime.secrets import SecretFolder

MAX_GRACE = 3600.0
MAX_ATTEMPTS = 100
#: Variables of ours that the window of a schedule, or a goal, gives its job.
_ALLOWED = frozenset((*OF_AN_ISSUE, *OF_A_CAUSE, *OF_A_GOAL))
DEFAULT_GRACE = 10.0
#: Takes a time budget away, in an edit.
NO_BUDGET = "none"
SIGNALS = frozenset(signal.Signals.__members__)


def kind_of(request: JobRequest, prefix: str) -> Kind:
    for word in KINDS:
        if word == request.kind:
            return word
    near = nearest(request.kind, KINDS)
    hint = f"; did you mean {near!r}?" if near else ""
    raise InvalidInput(
        f"{prefix}kind", f"{request.kind!r} is no kind of job{hint}", allowed=KINDS
    )


def priority_of(text: str, prefix: str) -> int:
    if text not in PRIORITIES:
        raise InvalidInput(
            f"{prefix}priority", f"{text!r} is no priority", allowed=PRIORITIES
        )
    return PRIORITIES.index(text)


def claims_of(
    request: JobRequest, kind: Kind, checkout: str, prefix: str, job_id: str = ""
) -> tuple[Claim, ...]:
    """What it claims; `job_id` is what its own worktree is claimed by."""
    if request.isolate:
        # What it says of the checkout it says of its own one.
        return isolated(_named_claims(request, checkout, prefix), job_id)
    if request.claims:
        return _named_claims(request, checkout, prefix)
    if request.read_only:
        return ()
    if kind in READ_ONLY_KINDS:
        return (Claim("read", "workspace", "", checkout),)
    return (Claim("write", "repo-content", "*"),)


def _named_claims(request: JobRequest, checkout: str, prefix: str) -> tuple[Claim, ...]:
    field = f"{prefix}claims"
    return strongest(
        _resolved(parse_claim(text, checkout=checkout, field=field), checkout)
        for text in request.claims
    )


def _resolved(claim: Claim, checkout: str) -> Claim:
    """A claim of a path or a checkout with the links on its way resolved, so that two
    spellings are one. What does not exist yet is kept as it is written."""
    if claim.family == "workspace" and claim.checkout != checkout:
        real = os.path.realpath(os.path.join(checkout, claim.checkout))
        return structs.replace(claim, checkout=real)
    if claim.family != "path" or not claim.rest or claim.rest.startswith(("/", "~")):
        return claim
    real = os.path.realpath(os.path.join(claim.checkout, claim.rest))
    rest = os.path.relpath(real, os.path.realpath(claim.checkout))
    return structs.replace(claim, rest=rest)


def replay_of(request: JobRequest, kind: Kind, prefix: str) -> Replay:
    if request.replay is None:
        return "safe" if request.read_only or kind in READ_ONLY_KINDS else "never"
    for word in REPLAYS:
        if word == request.replay:
            return word
    raise InvalidInput(
        f"{prefix}replay", f"{request.replay!r} is no policy", allowed=get_args(Replay)
    )


def spec_of(
    request: JobRequest,
    kind: Kind,
    checkout: str,
    secrets: SecretFolder,
    prefix: str,
) -> JobSpec:
    attempts = request.max_attempts
    if attempts is not None and not 1 <= attempts <= MAX_ATTEMPTS:
        raise InvalidInput(
            f"{prefix}max_attempts", f"{attempts} is outside 1 to {MAX_ATTEMPTS}"
        )
    argv = decode_argv(request.argv, field=f"{prefix}argv")
    env = _env(request.env, f"{prefix}env")
    check_exec_size(argv, env, prefix)
    return JobSpec(
        argv=tuple(encode_argv(argv)),
        cwd=_folder(request.cwd, checkout, f"{prefix}cwd"),
        env=env,
        stdin=_file(request.stdin, f"{prefix}stdin"),
        budgets=Budgets(
            admission=_budget(request.admission_timeout, f"{prefix}admission_timeout"),
            queue=_budget(request.queue_timeout, f"{prefix}queue_timeout"),
            execution=_budget(request.timeout, f"{prefix}timeout")
            or default_execution(kind),
            idle=_budget(request.idle_timeout, f"{prefix}idle_timeout"),
        ),
        stop_signal=_signal(request.stop_signal or "SIGTERM", f"{prefix}stop_signal"),
        grace=_grace(request.grace, f"{prefix}grace"),
        keep_leftovers=request.keep_leftovers,
        exit_attempts=attempts or 1,
        secrets=tuple(secrets_of(request, secrets, prefix)) if request.secrets else (),
        pty=_pty(request, f"{prefix}pty"),
        limits=_limits(request, prefix),
        after_job=_shell_command(request.after_job, f"{prefix}after_job"),
        artifacts=_patterns(request.artifacts, f"{prefix}artifacts"),
        outputs=check_names(request.outputs, field=f"{prefix}outputs")
        if request.outputs
        else (),
        isolation=_isolation(request, prefix),
        in_checkout=request.isolate is False,
        verify=_verify(request, prefix),
    )


def edit_of(edit: JobEdit, kind: Kind, checkout: str) -> Edit:
    """The edit of a job of this kind, its fields checked as those of a submission."""
    if edit == JobEdit():
        fields = JobEdit.__struct_fields__
        raise InvalidInput("edit", "names nothing to change", allowed=fields)
    claims: tuple[Claim, ...] | UnsetType = UNSET
    if edit.claims is not None:
        request = JobRequest(repo="", argv=[], claims=edit.claims)
        claims = claims_of(request, kind, checkout, "")
    return Edit(
        priority=UNSET if edit.priority is None else priority_of(edit.priority, ""),
        claims=claims,
        labels=UNSET if edit.labels is None else labels_of(edit.labels, ""),
        timeout=_new_budget(edit.timeout, "timeout"),
        queue_timeout=_new_budget(edit.queue_timeout, "queue_timeout"),
        admission_timeout=_new_budget(edit.admission_timeout, "admission_timeout"),
        idle_timeout=_new_budget(edit.idle_timeout, "idle_timeout"),
    )


def _verify(request: JobRequest, prefix: str) -> Verify | None:
    command = _shell_command(request.verify, f"{prefix}verify")
    seconds, rounds = request.verify_timeout, request.verify_rounds
    if command is None:
        for name, value in (("verify_timeout", seconds), ("verify_rounds", rounds)):
            if value is not None:
                raise InvalidInput(f"{prefix}{name}", "is for a job with verify")
        return None
    if rounds is not None and not 0 <= rounds <= MAX_ROUNDS:
        raise InvalidInput(
            f"{prefix}verify_rounds", f"{rounds} is outside 0 to {MAX_ROUNDS}"
        )
    return Verify(
        command,
        _budget(seconds, f"{prefix}verify_timeout") or DEFAULT_SECONDS,
        DEFAULT_ROUNDS if rounds is None else rounds,
    )


def _new_budget(value: str | float | None, field: str) -> float | UnsetType | None:
    if value is None:
        return UNSET
    return None if value == NO_BUDGET else parse_budget(value, field=field)


def _budget(value: str | float | None, field: str) -> float | None:
    return None if value is None else parse_budget(value, field=field)


def _grace(value: str | float | None, field: str) -> float:
    seconds = DEFAULT_GRACE if value is None else parse_duration(value, field=field)
    if seconds > MAX_GRACE:
        raise InvalidInput(field, f"{value!r} is longer than {MAX_GRACE:.0f} s")
    return seconds


def _signal(name: str, field: str) -> str:
    full = name.upper() if name.upper().startswith("SIG") else f"SIG{name.upper()}"
    if full not in SIGNALS:
        raise InvalidInput(field, f"{name!r} is no signal; write for example SIGINT")
    return full


def _folder(cwd: str | None, checkout: str, field: str) -> str:
    path = os.path.join(checkout, cwd) if cwd else checkout
    if cwd and not os.path.isdir(path):
        raise InvalidInput(field, f"{cwd!r} is no folder")
    return path


def _file(stdin: str | None, field: str) -> str | None:
    if stdin is None:
        return None
    if not os.path.isabs(stdin):
        raise InvalidInput(field, f"{stdin!r} is not absolute")
    if not os.path.isfile(stdin):
        problem = "is no file" if os.path.exists(stdin) else "does not exist"
        raise InvalidInput(field, f"{stdin!r} {problem}")
    return stdin


def _pty(request: JobRequest, field: str) -> bool:
    if request.pty and request.stdin is not None:
        raise InvalidInput(
            field, "gives the job a terminal as its input, so it takes no stdin file"
        )
    return request.pty


def _limits(request: JobRequest, prefix: str) -> ProcessLimits | None:
    nice, memory, pids = request.nice, request.memory, request.pids
    if not nice and memory is None and pids is None:
        return None
    if pids is not None and not limits_here().pids:
        raise InvalidInput(
            f"{prefix}pids",
            "cannot be kept for root: the system counts processes of other users only, "
            "and no cgroup can; `doctor` says why",
        )
    return ProcessLimits(
        nice=parse_nice(nice, field=f"{prefix}nice"),
        memory=None
        if memory is None
        else parse_memory(memory, field=f"{prefix}memory"),
        pids=None if pids is None else parse_pids(pids, field=f"{prefix}pids"),
    )


def _shell_command(command: str | None, field: str) -> str | None:
    """It is one argument of the shell."""
    if command is None:
        return None
    if not command.strip():
        raise InvalidInput(field, "is empty")
    return decode_argv([command], field=field)[0]


def _isolation(request: JobRequest, prefix: str) -> Isolation | None:
    branch, base = request.branch, request.base
    if not request.isolate:
        for name, value in (("branch", branch), ("base", base)):
            if value is not None:
                raise InvalidInput(f"{prefix}{name}", "is for a job with isolate")
        return None
    if branch is not None:
        check_pattern(branch, field=f"{prefix}branch")
    problem = None if base is None else base_problem(base)
    if problem is not None:
        raise InvalidInput(f"{prefix}base", f"{base!r} names no commit: {problem}")
    for name in (*request.env, *request.secrets):
        if name in GIT_PLACES:
            raise InvalidInput(
                f"{prefix}env", f"{name!r} would lead git out of the job's worktree"
            )
    return Isolation(branch, base)


def _patterns(patterns: list[str], field: str) -> tuple[str, ...]:
    if len(patterns) > MAX_PATTERNS:
        raise InvalidInput(field, f"are more than {MAX_PATTERNS}")
    checked = (check_glob(pattern, field=field) for pattern in patterns)
    return tuple(dict.fromkeys(checked))


def _env(env: dict[str, str], field: str) -> dict[str, str]:
    for name, value in env.items():
        if not name or "=" in name or "\0" in name:
            raise InvalidInput(field, f"{name!r} cannot name a variable")
        if "\0" in value:
            raise InvalidInput(field, f"the value of {name!r} has a NUL byte")
        if name.startswith("FORGE_") and name not in _ALLOWED:
            raise InvalidInput(field, f"{name!r} is set by the service itself")
    return env


def secrets_of(request: JobRequest, folder: SecretFolder, prefix: str) -> list[str]:
    """The names of the secrets of a job, which must be there when it is accepted."""
    field = f"{prefix}secrets"
    names = list(dict.fromkeys(request.secrets))
    if len(names) > MAX_SECRETS:
        raise InvalidInput(field, f"are more than {MAX_SECRETS}")
    known = folder.names() if names else []
    for name in names:
        check_name(name, field=field)
        if name in request.env:
            raise InvalidInput(field, f"{name!r} is also a variable of its env")
        if name not in known:
            hint = "; set it with: forge-actors secret set" if not known else ""
            raise InvalidInput(
                field, f"there is no secret {name!r}{hint}", allowed=tuple(known)
            )
    return names


def labels_of(labels: list[str], prefix: str) -> tuple[str, ...]:
    if len(labels) > MAX_LABELS:
        raise InvalidInput(f"{prefix}labels", f"are more than {MAX_LABELS}")
    for label in labels:
        short(label, f"{prefix}labels")
    return tuple(dict.fromkeys(labels))


def short(text: str | None, field: str) -> str | None:
    if text is not None and not 0 < len(text) <= MAX_NAME_LENGTH:
        raise InvalidInput(field, f"has 1 to {MAX_NAME_LENGTH} characters")
    return text


def forgotten_dependency(job: str, prefix: str = "") -> InvalidInput:
    """What a job was to run after is there no more."""
    problem = f"job {job} had ended, and was removed by retention just now"
    return InvalidInput(f"{prefix}after", problem)
