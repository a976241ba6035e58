"""`show`: everything about one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.job_text import job_page
from forge_actors.cli.selection import add_selectors, names_one, selected
from forge_actors.cli.verb import note, print_json
from forge_actors.client.home import has_store
from forge_actors.client.sync import Service
from forge_actors.domain.errors import Unavailable

if TYPE_CHECKING:
    import argparse

HELP = "Show everything about one job, or about several."
EXAMPLES = """\
  forge-actors show 4f2k9x
  forge-actors show 4f2k9x --json
  forge-actors show --failed --repo app
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)
    try:
        views = [service.get("jobs", job) for job in selected(service, args)]
    except Unavailable:
        if not has_store(service.home):
            raise
        # Only now: reading a store costs imports that a client must not pay for.
        from forge_actors.client import offline

        found = selected(service, args, select=offline.selector(service.home))
        views = [offline.job(service.home, job) for job in found]
        note(f"no service runs on {service.home}; this is what its store holds")
    if args.json:
        print_json(views[0] if names_one(args) else views)
    else:
        print("\n\n".join("\n".join(job_page(job)) for job in views))
    return 0
