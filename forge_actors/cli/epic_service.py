"""The parts of `epic` that ask a service: runs that it works through by itself."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Any

from forge_actors.cli.out_file import write_out
from forge_actors.cli.text import clean
from forge_actors.cli.verb import TIMED_OUT, UsageError, note, print_json, repository
from forge_actors.client.sync import Service
from forge_actors.domain.errors import NotFound, Unavailable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

#: The id of a run, or the beginning of one; anything else is an EPIC.
_RUN = re.compile(r"[0-9][0-9a-z]{3,18}")
#: How a run that was waited for has ended, as `epic run` tells it.
_EXITS = {"nothing-admissible": 0, "drained": 0, "stopped": 130, "interrupted": 130}
#: Events after which a run may look otherwise.
_KINDS = ("snapshot", "issue_started", "issue_ended", "degraded", "stopping", "ended")


def is_run(text: str | None) -> bool:
    """Whether this is meant to be the id of a run, and no EPIC."""
    known = text is not None and _RUN.fullmatch(text) is not None
    return known and not os.path.exists(text or "")


def begin(args: argparse.Namespace) -> int:
    """`epic run --detach`, `epic resume --detach`."""
    if args.config is not None:
        raise UsageError("--config: a service goes by its own settings")
    epic = args.epic if "://" in args.epic else os.path.abspath(args.epic)
    body: dict[str, Any] = {
        "epic": epic,
        "repo": repository(args.repo or os.path.abspath(args.checkout or ".")),
        "max_parallel": args.max_parallel,
        "agent": args.agent,
        "resume": args.action == "resume",
        "force": args.force,
        "accept_config_change": args.accept_config_change,
        "request_id": args.request_id,
    }
    given = {name: value for name, value in body.items() if value not in (None, False)}
    run = Service(args.home).post("epics", body=given)
    if args.json:
        print_json(run)
    else:
        print(run["id"])
    return 0


def listed(args: argparse.Namespace) -> int:
    query = [("limit", args.limit), ("active", 1 if args.active else None)]
    runs = Service(args.home).get("epics", query=query)["epics"]
    if args.json:
        print_json(runs)
        return 0
    from forge_actors.cli.epic_text import listing

    for line in listing(runs):
        print(clean(line))
    return 0


def status(args: argparse.Namespace) -> int:
    """One run, and again at each change if that is wanted, until it has ended."""
    service = Service(args.home)
    # What happens while it is asked for is not to be missed.
    last = _last_event(service) if args.watch else 0
    run = service.get("epics", args.epic)
    if args.svg is not None:
        path = ("epics", run["id"], "graph.svg")
        write_out(args.svg, b"".join(service.stream("GET", path)).decode())
        return 0
    _print(args, run)
    if not args.watch or run["state"] == "ended":
        return 0
    for event in _events(service, last):
        if event["data"].get("epic") == run["id"]:
            _print(args, service.get("epics", run["id"]))
            if event["kind"] == "epic_ended":
                break
    return 0


def stop(args: argparse.Namespace) -> int:
    mode = "now" if args.now else "drain"
    service = Service(args.home)
    run = service.post("epics", args.epic, "stop", body={"mode": mode})
    note(f"run {run['id']} is asked to stop ({mode})")
    if args.follow:
        service.post("epics", run["id"], "wait", body={})
    return 0


def wait(args: argparse.Namespace) -> int:
    body = {"timeout": args.timeout}
    answer = Service(args.home).post("epics", args.epic, "wait", body=body)
    run = answer["epic"]
    _print(args, run)
    if answer["timed_out"]:
        note(f"not ended within {args.timeout}")
        return TIMED_OUT
    return _EXITS.get(run["reason"], 1)


def served_views(home: str | None) -> dict[str, dict[str, Any]]:
    """What a service knows of the runs that go on, by their invocations: more than
    the files say. Nothing, where no service runs."""
    service = Service(home)
    try:
        runs = service.get("epics", query=[("active", 1)])["epics"]
        whole = [service.get("epics", run["id"]) for run in runs if run["view"]]
    except (Unavailable, NotFound):  # or it is of an earlier release
        return {}
    views = [run["view"] for run in whole if run["view"] is not None]
    return {view["invocation"]: view for view in views}


def _print(args: argparse.Namespace, run: dict[str, Any]) -> None:
    if args.json:
        print_json(run)
        return
    from forge_actors.cli.epic_text import run_detail

    print("\n".join([*map(clean, run_detail(run)), ""]), flush=True)


def _last_event(service: Service) -> int:
    query = [("newest", 1), ("limit", 1)]
    lines = b"".join(service.stream("GET", ("events",), query=query)).split(b"\n")
    return next((int(json.loads(line)["seq"]) for line in lines if line), 0)


def _events(service: Service, after: int) -> Iterator[dict[str, Any]]:
    """The events of EPICs from then on."""
    query: list[tuple[str, str | int | None]] = [("follow", 1), ("after", after)]
    query += [("kind", f"epic_{kind}") for kind in (*_KINDS, "waiting")]
    left = b""
    for piece in service.stream("GET", ("events",), query=query):
        *lines, left = (left + piece).split(b"\n")
        yield from (json.loads(line) for line in lines if line)
