"""Selecting jobs: by their ids, by what they are, or of some ids those that are.

add_selectors(parser)
for job in selected(service, args): ...
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.verb import UsageError, origin, repository
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence

    from forge_actors.client.sync import Service

    Select = Callable[[dict[str, object]], list[str]]

HOW = "give ids, or --repo, --state, --kind, --label, --work, --failed or --mine"


def add_selectors(parser: argparse.ArgumentParser) -> None:
    """JOB..., and the options that select jobs by what they are."""
    parser.add_argument(
        "jobs",
        nargs="*",
        metavar="JOB",
        help="id, or at least 4 characters of its start or its end",
    )
    add_filters(
        parser.add_argument_group(
            "selectors", "instead of ids; several narrow, also what ids name"
        )
    )


def add_filters(parser: argparse.ArgumentParser | argparse._ArgumentGroup) -> None:
    """The options alone, for a verb that lists jobs."""
    add = parser.add_argument
    for name, metavar, text in (
        ("--repo", "REPO", "of this repository, or of any of several; repeatable"),
        ("--state", "STATE", "in this state, or in any of several; repeatable"),
        ("--kind", "KIND", "of this kind, or of any of several; repeatable"),
        ("--label", "LABEL", "with this label, and every further one; repeatable"),
        ("--work", "ID", "of this workflow instance or EPIC run; repeatable"),
    ):
        add(name, action="append", default=[], metavar=metavar, help=text)
    add("--failed", action="store_true", help="failed, timed out, or blocked by such")
    add(
        "--mine",
        action="store_true",
        help="submitted from a shell; in a job: by that job",
    )


def has_filters(args: argparse.Namespace) -> bool:
    lists = (args.repo, args.state, args.kind, args.label, args.work)
    return any(lists) or args.failed or args.mine


def names_one(args: argparse.Namespace) -> bool:
    """Whether one job is named by its id, so that the answer is one and no list."""
    return len(args.jobs) == 1 and not has_filters(args)


def filters(args: argparse.Namespace) -> dict[str, object]:
    """What the options say, as the service takes it."""
    return {
        "repo": [repository(name) for name in args.repo],
        "state": args.state,
        "kind": args.kind,
        "label": args.label,
        "origin": [origin()] if args.mine else [],
        "work": args.work,
        "failed": args.failed,
    }


def parameters(args: argparse.Namespace) -> list[tuple[str, str | int | None]]:
    """The same as the parameters of a request that lists jobs."""
    pairs: list[tuple[str, str | int | None]] = []
    for name, value in filters(args).items():
        if isinstance(value, list):
            pairs += ((name, word) for word in value)
        elif value:
            pairs.append((name, 1))
    return pairs


def selected(
    service: Service,
    args: argparse.Namespace,
    *,
    active: bool = False,
    unretried: bool = False,
    states: Sequence[str] = (),
    select: Select | None = None,
) -> list[str]:
    """The jobs that were selected, newest first; what is named alone stays as typed.

    Those found by options are only such that have not ended if `active` is set, and
    that no job is a retry of if `unretried` is; without --state only those in one of
    `states`, if there are any. `select` answers in place of a service.

    Raises:
        UsageError: nothing is selected. Refused: no job, or too many.
    """
    if "" in args.jobs:
        raise UsageError("JOB: an empty word is no id")
    if not has_filters(args):
        if not args.jobs:
            raise UsageError(f"no job is selected: {HOW}")
        return list(args.jobs)
    body = {
        **filters(args),
        "state": args.state or list(states),
        "jobs": args.jobs,
        "active": active,
        "unretried": unretried,
    }
    if select is None:
        found: list[str] = service.post("select", body=body)["jobs"]
    else:
        found = select(body)
    if not found:
        raise Refused(nothing(args, active=active, unretried=unretried))
    return found


def nothing(
    args: argparse.Namespace, *, active: bool = False, unretried: bool = False
) -> str:
    """That no job is like what was asked for, in a sentence."""
    words = [
        *(f"--repo {name}" for name in args.repo),
        *(f"--state {state}" for state in args.state),
        *(f"--kind {kind}" for kind in args.kind),
        *(f"--label {label}" for label in args.label),
        *(f"--work {work}" for work in args.work),
        *(["--failed"] if args.failed else []),
        *(["--mine"] if args.mine else []),
    ]
    which = "none of the named jobs" if args.jobs else "no job"
    if active:
        which += " that has not ended"
    if unretried:
        which += " that was not retried yet"
    return f"{which} matches {' '.join(words)}"
