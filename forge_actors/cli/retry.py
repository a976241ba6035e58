"""`retry`: run jobs again that have ended, as new jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.approve import HOW
from forge_actors.cli.selection import add_selectors, has_filters, names_one, selected
from forge_actors.cli.verb import note, origin, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Run jobs again that have ended: the same commands, as new jobs whose ids are\n"
    "printed. What ran after a job that is retried too runs after its retry.\n"
    "Selectors mean --failed unless --state is given, and pass over what was retried\n"
    "before."
)
EXAMPLES = """\
  forge-actors retry 4f2k9x
  forge-actors retry --failed --repo app
  forge-actors retry --state cancelled --label nightly
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)
    parser.add_argument(
        "--authorise",
        metavar="NAME[,NAME]",
        help="effects that you allow the new jobs: push, pull_request, ...",
    )
    parser.add_argument(
        "--resume",
        action="store_true",
        help="jobs of agents: go on in the same session and worktree",
    )


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    if has_filters(args) and not args.state:
        args.failed = True
    jobs = selected(service, args, unretried=True)
    if has_filters(args):
        jobs.reverse()  # the oldest first, as they were submitted
    body = {"jobs": jobs, "origin": origin(), "resume": args.resume}
    if args.authorise is not None:
        body |= {"authorise": args.authorise.split(","), "how": HOW}
    answer = service.post("retry", body=body)
    made = answer["jobs"]
    for job in made:
        if job["existing"]:
            note(f"job {job['id']} was there already")
    if args.json:
        print_json(made[0] if names_one(args) else made)
    else:
        print("\n".join(job["id"] for job in made))
    return 0
