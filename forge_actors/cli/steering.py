"""What `hold`, `unhold`, `pause` and `resume` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.selection import has_filters, selected
from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

    from forge_actors.cli.job_text import Json

#: The states of jobs that wait. Those of the domain; importing it would cost too much.
WAITING = (
    "queued",
    "waiting_for_dependency",
    "waiting_for_workspace",
    "waiting_for_heavy_check",
    "waiting_for_integration",
    "waiting_for_release_barrier",
    "waiting_for_approval",
    "waiting_for_limit",
    "waiting_for_retry",
)


def steer_waiting(args: argparse.Namespace, verb: str) -> int:
    """Do it to the selected jobs; options mean only such that wait."""
    if has_filters(args) and not args.state:
        args.state = list(WAITING)
    return steer(args, verb)


def steer(args: argparse.Namespace, verb: str) -> int:
    """Do it to all of the selected jobs, or to none."""
    service = Service(args.home)
    body = {"jobs": selected(service, args, active=True)}
    jobs = service.post("bulk", verb, body=body)["jobs"]
    if args.json:
        print_json(jobs)
        return 0
    for job in jobs:
        print(clean(f"{job['id']} {_shown(job, verb)}"))
    return 0


def _shown(job: Json, verb: str) -> str:
    kind = (job["waiting"] or {}).get("kind")
    if job["paused"]:
        return "paused" if verb == "pause" else "still paused; why says by what"
    if kind == "pause" and verb in ("hold", "pause"):
        return "held"
    return str(job["state"])


def set_pauses(args: argparse.Namespace, verb: str, scopes: list[str]) -> int:
    """Begin or end the pauses of these scopes, and show those there are then."""
    service = Service(args.home)
    answer: dict[str, Any] = {}
    for scope in scopes:
        body = {"scope": scope, "jobs": args.running}
        answer = service.post(verb, body=body)
    if args.json:
        print_json(answer)
        return 0
    for line in pause_lines(answer["pauses"]) or ["nothing is paused"]:
        print(clean(line))
    return 0


def pause_lines(pauses: list[Json]) -> list[str]:
    """Each pause in a line: what, since when, and whether running jobs too."""
    size = max((len(pause["scope"]) for pause in pauses), default=0)
    return [
        f"{pause['scope']:<{size}}  since {pause['since']}"
        + (", with running jobs" if pause["jobs"] else "")
        for pause in pauses
    ]
