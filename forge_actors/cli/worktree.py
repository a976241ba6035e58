"""`worktree`: list, keep, remove or restore the worktrees of jobs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from forge_actors.cli.reading import read
from forge_actors.cli.selection import add_filters, filters, has_filters, nothing
from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused
from forge_actors.domain.sizes import size_text

if TYPE_CHECKING:
    import argparse

HELP = (
    "List, keep, remove or restore the worktrees that were made for jobs. Before one\n"
    "is removed everything in it is saved: what is not committed as a commit on its\n"
    "branch, ignored files in an archive. Only then its folder goes, and restore\n"
    "makes it again. What cannot be saved stays, and list says why."
)
EXAMPLES = """\
  forge-actors worktree list
  forge-actors worktree remove --repo app --state succeeded
  forge-actors worktree restore 4f2k9x --to ../again
"""
HEAD = ("JOB", "REPO", "BRANCH", "STATE", "SIZE", "UNSAVED", "STAYS BECAUSE")
NAMES = "the id of its job, at least 4 characters of it, or its branch"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list worktrees, and what is in them")
    listing.add_argument(
        "--removed", action="store_true", help="also those that were removed"
    )
    listing.add_argument(
        "--quick", action="store_true", help="do not look into them: no sizes"
    )
    keep = actions.add_parser("keep", help="never remove them by themselves")
    unkeep = actions.add_parser("unkeep", help="let them be removed again")
    remove = actions.add_parser("remove", help="save what is in them and remove them")
    remove.add_argument(
        "--force",
        action="store_true",
        help="also kept ones, and those with more ignored files than are archived;"
        " all else is saved in any case",
    )
    remove.add_argument(
        "--dry-run", action="store_true", help="remove nothing, say what would go"
    )
    for action in (keep, unkeep, remove):
        action.add_argument("names", nargs="*", metavar="JOB", help=NAMES)
        add_filters(
            action.add_argument_group("selectors", "instead of names, by their jobs")
        )
    restore = actions.add_parser("restore", help="make one again that was removed")
    restore.add_argument("name", metavar="JOB", help=NAMES)
    restore.add_argument("--to", metavar="PATH", help="where (default: where it was)")
    for action in (listing, keep, unkeep, remove, restore):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "list":
        return _list(service, args)
    if args.action == "restore":
        return _restore(service, args)
    names = _selected(service, args)
    if args.action == "remove":
        return _remove(service, args, names)
    body = {"worktrees": names}
    views = service.post("worktrees", args.action, body=body)["worktrees"]
    if args.json:
        print_json(views)
    else:
        print("\n".join(clean(view["id"]) for view in views))
    return 0


def _list(service: Service, args: argparse.Namespace) -> int:
    def served() -> list[dict[str, Any]]:
        query = [
            ("removed", int(args.removed)),
            ("quick", int(args.quick)),
        ]
        views: list[dict[str, Any]] = service.get("worktrees", query=query)["worktrees"]
        return views

    def kept() -> list[dict[str, Any]]:
        from forge_actors.client import offline_worktrees

        return offline_worktrees.worktrees(service.home, removed=args.removed)

    views = read(service, served, kept)
    if args.json:
        print_json(views)
        return 0
    rows = [_row(view) for view in views]
    if rows:
        width = terminal_width()
        print("\n".join(table(HEAD, rows, columns=width, flexible=[2, 6])))
    else:
        note("there are no worktrees")
    return 0


def _row(view: dict[str, Any]) -> tuple[str, ...]:
    size = "" if view["size"] is None else size_text(view["size"])
    unsaved = []
    for name, thing in (("uncommitted", "file"), ("unpushed", "commit")):
        if count := view[name]:
            unsaved.append(f"{count} {thing}" + "s" * (count != 1))
    return (
        view["id"][-6:],
        view["repo"],
        view["branch"],
        view["state"],
        size,
        ", ".join(unsaved),
        view["stays"] or view["reason"] or "",
    )


def _selected(service: Service, args: argparse.Namespace) -> list[str]:
    """The worktrees that are meant: by name, or by what their jobs are."""
    if "" in args.names:
        raise UsageError("JOB: an empty word is no worktree")
    if not has_filters(args):
        if not args.names:
            raise UsageError("no worktree is selected: give jobs, branches or --repo")
        names: list[str] = args.names
        return names
    body = {**filters(args), "jobs": [], "active": False, "unretried": False}
    jobs = set(service.post("select", body=body)["jobs"])
    views = service.get("worktrees", query=[("quick", 1)])["worktrees"]
    wanted = [
        view["id"]
        for view in views
        if view["id"] in jobs and (not args.names or _is_named(view, args.names))
    ]
    if not wanted:
        args.jobs = args.names
        raise Refused(f"no worktree is there: {nothing(args)}")
    return wanted


def _is_named(view: dict[str, Any], names: list[str]) -> bool:
    job = view["id"]
    return view["branch"] in names or any(
        len(name) >= 4 and (job.startswith(name) or job.endswith(name))
        for name in names
    )


def _remove(service: Service, args: argparse.Namespace, names: list[str]) -> int:
    body = {"worktrees": names, "force": args.force, "dry_run": args.dry_run}
    removed = service.post("worktrees", "remove", body=body)["worktrees"]
    if args.json:
        print_json(removed)
    for each in removed:
        if each["removed"] and not args.json:
            print(clean(each["id"]))
        if each["removed"] and each["reason"]:
            note(f"{each['id']} is gone, but not all of it: {each['reason']}")
    left = [each for each in removed if not each["removed"]]
    for each in left:
        note(f"{each['id']} ({each['branch']}) stays: {each['reason']}")
    if args.dry_run:
        note(f"{len(removed) - len(left)} would be removed")
    return Refused.exit_code if left else 0


def _restore(service: Service, args: argparse.Namespace) -> int:
    to = None if args.to is None else os.path.abspath(os.path.expanduser(args.to))
    done = service.post("worktrees", args.name, "restore", body={"to": to})
    for text in done["notes"]:
        note(text)
    if args.json:
        print_json(done)
    else:
        print(clean(done["path"]))
    return 0
