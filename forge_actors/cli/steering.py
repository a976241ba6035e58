"""What `hold`, `unhold`, `pause` and `resume` have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.selection import selected
from forge_actors.cli.text import clean
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

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
    return steer(args, verb, states=WAITING)


def steer(args: argparse.Namespace, verb: str, *, states: Sequence[str] = ()) -> int:
    """Do it to all of the selected jobs, or to none. Options without --state mean those
    in one of `states`, if there are any."""
    service = Service(args.home)
    body = {"jobs": selected(service, args, active=True, states=states)}
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
    if len(scopes) > 1:
        _check_scopes(service, scopes)
    opens = _closed(service, scopes) if verb == "resume" and not args.json else []
    answer: dict[str, Any] = {}
    for scope in scopes:
        body = {"scope": scope, "jobs": args.running}
        answer = service.post(verb, body=body)
    if args.json:
        print_json(answer)
        return 0
    lines = [f"{name} is open again: its jobs go on" for name in opens]
    for line in [*lines, *pause_lines(answer["pauses"])] or ["nothing is paused"]:
        print(clean(line))
    return 0


def _closed(service: Service, scopes: list[str]) -> list[str]:
    """The providers among them whose accounts are closed, which a resume opens."""
    names = [s.partition(":")[2] for s in scopes if s.startswith("provider:")]
    if not names:
        return []
    providers = service.get("status")["providers"]
    return [name for name in names if providers.get(name, {}).get("state") == "closed"]


def _check_scopes(service: Service, scopes: list[str]) -> None:
    """Refuse a name that is wrong before the first of the pauses begins or ends.

    Raises:
        NotFound: there is no such repository. InvalidInput: nor provider.
    """
    state = service.get("status")
    providers = state["providers"]
    # One that the settings dropped meanwhile can still be let go.
    paused = {pause["scope"] for pause in state["pauses"]}
    for scope in scopes:
        place, _, name = scope.partition(":")
        if place == "repo":
            service.get("repositories", name)
        elif name not in providers and scope not in paused:
            raise InvalidInput(
                "provider", f"{name!r} is no known provider", allowed=tuple(providers)
            )


def pause_lines(pauses: list[Json]) -> list[str]:
    """Each pause in a line: what, since when, and whether running jobs too."""
    size = max((len(pause["scope"]) for pause in pauses), default=0)
    return [
        f"{pause['scope']:<{size}}  since {pause['since']}"
        + (", with running jobs" if pause["jobs"] else "")
        for pause in pauses
    ]
