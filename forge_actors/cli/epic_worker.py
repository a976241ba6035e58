"""`epic-worker`: the process that works on one issue of an EPIC.

An EPIC run starts it, with two locks that it inherits. It is no verb for people, so no
list of verbs has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.client.home import resolve_home

if TYPE_CHECKING:
    import argparse

HELP = "Work on one issue of an EPIC. Only an EPIC run starts this."
EXAMPLES = """\
  forge-actors epic run https://github.com/octo/demo/issues/7
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--checkout", metavar="DIR", required=True)
    parser.add_argument("--config", metavar="FILE", default="")
    parser.add_argument("--epic", metavar="N", type=int, required=True)
    parser.add_argument("--issue", metavar="N", type=int, required=True)
    parser.add_argument("--claim", metavar="ID", required=True)
    parser.add_argument("--generation", metavar="N", type=int, required=True)
    parser.add_argument("--invocation", metavar="ID", required=True)
    parser.add_argument("--controller-fd", metavar="N", type=int, required=True)
    parser.add_argument("--run-fd", metavar="N", type=int, required=True)
    parser.add_argument("--agent", metavar="NAME")
    parser.add_argument("--folder", metavar="A/B", default="")
    parser.add_argument("--accept-config-change", action="store_true")


def run(args: argparse.Namespace) -> int:
    from forge_actors.domain.epic.admitted import Admitted
    from forge_actors.runtime.epic_worker import WorkerOptions, work

    given = Admitted(
        epic=args.epic,
        issue=args.issue,
        claim_id=args.claim,
        generation=args.generation,
        invocation_id=args.invocation,
        accept_config_change=args.accept_config_change,
    )
    options = WorkerOptions(
        checkout=args.checkout,
        config=args.config,
        given=given,
        controller_fd=args.controller_fd,
        run_fd=args.run_fd,
        agent=args.agent,
        folder=tuple(filter(None, args.folder.split("/"))),
    )
    return work(options, resolve_home(args.home))
