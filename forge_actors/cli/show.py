"""`show`: everything about one job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.job_text import Json, job_page
from forge_actors.cli.reading import read
from forge_actors.cli.selection import add_selectors, names_one, selected
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

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

    def served() -> list[Json]:
        return [service.get("jobs", job) for job in selected(service, args)]

    def kept() -> list[Json]:
        from forge_actors.cli.kept_artifacts import with_artifacts
        from forge_actors.client import offline
        from forge_actors.client.offline_outputs import with_outputs

        home = service.home
        found = selected(service, args, select=offline.selector(home))
        views = [with_artifacts(home, offline.job(home, job)) for job in found]
        return [with_outputs(home, view) for view in views]

    views = read(service, served, kept)
    if args.json:
        print_json(views[0] if names_one(args) else views)
    else:
        print("\n\n".join("\n".join(job_page(job)) for job in views))
    return 0
