"""`why`: why a job is where it is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.color import Painter, add_color
from forge_actors.cli.job_text import Json
from forge_actors.cli.reading import read
from forge_actors.cli.selection import add_selectors, names_one, selected
from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = "Say in a sentence why a job waits, runs or ended as it did."
EXAMPLES = """\
  forge-actors why 4f2k9x
  forge-actors why --repo app --state queued
"""


def configure(parser: argparse.ArgumentParser) -> None:
    add_selectors(parser)
    add_color(parser)


def run(args: argparse.Namespace) -> int:
    service = Service(args.home)

    def served() -> list[Json]:
        return [service.get("jobs", job, "why") for job in selected(service, args)]

    def kept() -> list[Json]:
        from forge_actors.client import offline, offline_home

        found = selected(service, args, select=offline.selector(service.home))
        return [offline_home.why(service.home, job) for job in found]

    answers = read(service, served, kept)
    if args.json:
        print_json(answers[0] if names_one(args) else answers)
    else:
        painter = Painter(args.color)
        for answer in answers:
            job = painter.state(clean(answer["job"]), answer["state"])
            print(f"{job}: {clean(answer['sentence'])}")
    return 0
