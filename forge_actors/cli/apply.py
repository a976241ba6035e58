"""`apply`: bring what a job did into the checkout of its repository."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.verb import note, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Bring the branch of a job into the checkout that it was submitted for. It is\n"
    "only done if nothing is uncommitted there, no job holds it and it merges without\n"
    "a conflict; otherwise it says why, and nothing is changed."
)
EXAMPLES = """\
  forge-actors apply 4f2k9x
  forge-actors apply 4f2k9x --ff-only
  forge-actors apply 4f2k9x --cherry-pick --commit-first
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="its id, or a part of it")
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument(
        "--ff-only",
        action="store_const",
        const="ff-only",
        dest="mode",
        help="only if the checkout's branch has not gone on since",
    )
    mode.add_argument(
        "--merge",
        action="store_const",
        const="merge",
        dest="mode",
        help="with a merge commit in any case (default: only where it is needed)",
    )
    mode.add_argument(
        "--cherry-pick",
        action="store_const",
        const="cherry-pick",
        dest="mode",
        help="its commits anew, on top of the checkout's branch",
    )
    parser.add_argument(
        "--commit-first",
        action="store_true",
        help="commit on its branch what is not committed in its worktree",
    )


def run(args: argparse.Namespace) -> int:
    body = {"mode": args.mode or "auto", "commit_first": args.commit_first}
    done = Service(args.home).post("jobs", args.job, "apply", body=body)
    if args.json:
        print_json(done)
        return 0
    print(done["commit"])
    if done["how"] == "nothing":
        note(f"{done['into']} had all of {done['branch']} already")
    else:
        note(
            f"{done['commits']} commits of {done['branch']} are in {done['into']}"
            f" ({done['how']}) in {done['checkout']}"
        )
    return 0
