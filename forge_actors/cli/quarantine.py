"""`quarantine`: claims that are kept for what ended jobs left."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.reading import read
from forge_actors.cli.text import clean
from forge_actors.cli.verb import add_common, note, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Refused

if TYPE_CHECKING:
    import argparse

HELP = (
    "List the claims that nobody gets, because processes of an ended job may still\n"
    "work on what was claimed, or free them by hand. They are free by themselves once\n"
    "those are proven gone. Without --yes, release only says what would be free, and\n"
    "exits with 3."
)
EXAMPLES = """\
  forge-actors quarantine list
  forge-actors quarantine release 4f2k9x --yes
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    listing = actions.add_parser("list", help="list kept claims, and what keeps them")
    release = actions.add_parser("release", help="free those of one job")
    release.add_argument("job", metavar="JOB")
    text = "free them; you have seen that nothing of the job runs any more"
    release.add_argument("--yes", action="store_true", help=text)
    for action in (listing, release):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if args.action == "list":
        return _list(service, args)
    return _release(service, args)


def _list(service: Service, args: argparse.Namespace) -> int:
    def served() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = service.get("quarantine")["quarantined"]
        return found

    def stored() -> list[dict[str, Any]]:
        from forge_actors.client import offline_home

        return offline_home.quarantined(service.home)

    found = read(service, served, stored)
    if args.json:
        print_json(found)
    for left in () if args.json else found:
        print(clean(kept_line(left)))
    if not found:
        note("no claims are kept")
    return 0


def _release(service: Service, args: argparse.Namespace) -> int:
    # Its id: what is asked for by a few characters is freed by all of them.
    job = service.get("jobs", args.job)["id"]
    if args.yes:
        left = service.post("quarantine", job, "release", body={})
    else:
        kept = service.get("quarantine")["quarantined"]
        left = next((each for each in kept if each["job"] == job), None)
        if left is None:
            raise Refused(f"no claims are kept for what job {job} left")
    if args.json:
        print_json({"released": args.yes, **left})
    else:
        print(clean(kept_line(left)))
    if args.yes:
        return 0
    note(
        "nothing was freed; look that none of these processes is the job's (they may"
        " have their numbers in another container), then add --yes: others get the"
        " claims at once"
    )
    return Refused.exit_code


def kept_line(left: dict[str, Any]) -> str:
    """One job's kept claims, and which processes have to be gone."""
    pids = " ".join(map(str, left["pids"]))
    return (
        f"{left['job']}  {left['repo']}  {' '.join(left['claims'])}:"
        f" process {pids}, since {left['since']} ({left['reason']})"
    )
