"""`repo trust`: takes over what a repository brings along, as a person has seen it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from forge_actors.cli.trust_text import shown
from forge_actors.cli.verb import UsageError, note, print_json, repository

if TYPE_CHECKING:
    import argparse

    from forge_actors.client.sync import Service

#: Digits of a digest that name it.
SHORTEST = 8
#: Exit status of a call that took nothing over.
ONLY_SHOWN = 3


def configure(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--show", action="store_true", help="only show what there is")
    what.add_argument("--yes", action="store_true", help="trust it without a question")
    what.add_argument(
        "--remove", action="store_true", help="trust it no more, schedules and all"
    )
    add(
        "--digest",
        metavar="HEX",
        help="trust only the content with this digest, or the beginning of one",
    )
    add(
        "--secret",
        action="append",
        default=[],
        metavar="SECRET",
        help="a secret that its jobs may get; each has to be named; repeatable",
    )
    add(
        "--authorise",
        dest="authorised",
        metavar="EFFECT[,EFFECT]",
        help="effects that its jobs may have without being asked, if they say so",
    )


def trust(service: Service, args: argparse.Namespace) -> int:
    place = ("repositories", repository(args.name), "trust")
    if args.remove:
        view = service.delete(*place)
        _print(view, args, diff=False)
        return 0
    view = service.get(*place)
    _print(view, args, diff=True)
    if args.show:
        return 0
    if view["state"] == "none":
        note(f"{view['repo']} has no .forge/*.toml")
        return 0
    if args.digest is not None and len(args.digest) < SHORTEST:
        raise UsageError(f"--digest takes at least {SHORTEST} digits")
    if args.digest and not view["digest"].startswith(args.digest):
        raise UsageError(f"its digest is {view['digest']}, not {args.digest}")
    given = args.secret or args.authorised is not None
    if view["state"] == "trusted" and not given:
        note(f"{view['repo']} is trusted as it is")
        return 0
    if not (args.yes or args.digest or _agreed(view, args)):
        note(
            f"nothing was taken over; forge-actors repo trust {view['repo']} --digest"
            f" {view['digest'][:16]} takes over exactly this"
        )
        return ONLY_SHOWN
    body = {
        "digest": view["digest"],
        "secrets": args.secret,
        "authorised": args.authorised.split(",") if args.authorised else [],
    }
    done = service.post(*place, body=body)
    if args.json:
        print_json(done)
    note(f"{done['repo']} is trusted as it was shown")
    lost = [each for each in view["authorised"] if each not in done["authorised"]]
    if lost:
        note(f"its jobs are no longer authorised to {' and '.join(lost)}")
    return 0


def _print(view: dict[str, Any], args: argparse.Namespace, *, diff: bool) -> None:
    if not args.json:
        for line in shown(view, diff=diff):
            print(line)
    elif args.show or args.remove:
        print_json(view)


def _agreed(view: dict[str, Any], args: argparse.Namespace) -> bool:
    """Whether somebody sits there and says yes."""
    if args.json or not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    print(f"Trust this of {view['repo']}? [y/N] ", end="", flush=True)
    return sys.stdin.readline().strip().lower() in ("y", "yes")
