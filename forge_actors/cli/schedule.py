"""`schedule`: jobs that are submitted by themselves, when they are due."""

from __future__ import annotations

import argparse
import os
from typing import Any

from forge_actors.cli.job_options import add_job_options, job_of
from forge_actors.cli.prompts import add_prompt
from forge_actors.cli.schedule_text import detail, listing, told
from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.activations import mark
from forge_actors.client.home import resolve_home
from forge_actors.client.schedule_files import read_schedules
from forge_actors.client.sync import Service

HELP = (
    "Have jobs submitted at intervals, at the times of a cron expression, or once.\n"
    "Every time is decided once, whatever restarts, and why is kept: see show."
)
EXAMPLES = """\
  forge-actors schedule add nightly --cron "30 2 * * *" -- make test
  forge-actors schedule add fix --on issues:octo/demo,label:bug -- ./look-at-issue
  forge-actors schedule apply schedules.toml
"""
TAKES_COMMAND = True
_MISFIRES = ("skip", "once", "all")
_OVERLAPS = ("skip", "queue", "cancel")
#: Options that go into a schedule under their own name.
_PLAIN = (
    *("on", "every", "cron", "at", "timezone", "misfire", "catch_up", "catch_up_most"),
    *("overlap", "jitter", "cooldown", "daily_budget", "max_failures", "backoff"),
    *("max_backoff", "max_runs", "until", "wake"),
)
_HINDRANCES = ("approval", "release", "nothing")
_FLAGS = ("when_clean", "not_while", "shadow")
#: Those that say when it runs; another one takes the place of the one before.
_TIMES = ("on", "every", "cron", "at", "manual")


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    add = actions.add_parser("add", help="add a schedule; its command is behind --")
    edit = actions.add_parser(
        "edit", help="change when it runs, a policy or an option; behind --, its job"
    )
    for changed in (add, edit):
        changed.add_argument("name", metavar="SCHEDULE", help="what it is called")
        _add_times(changed)
        _add_wake(changed)
        _add_policies(changed.add_argument_group("policies"))
        add_job_options(changed)
        add_prompt(changed.add_mutually_exclusive_group())
    edit.add_argument(
        "--revision", type=int, metavar="N", help="only if nobody changed it since"
    )
    actions.add_parser("list", help="all schedules, and when each comes next")
    show = actions.add_parser("show", help="a schedule, and what became of its times")
    show.add_argument(
        "--count", type=int, default=10, metavar="N", help="times to tell of (10)"
    )
    ahead = actions.add_parser("next", help="when it comes next, and if it would run")
    ahead.add_argument(
        "--count", type=int, default=10, metavar="N", help="times to tell of (10)"
    )
    pause = actions.add_parser("pause", help="let it run no more, until resume")
    resume = actions.add_parser("resume", help="let it run again, from now on")
    run_now = actions.add_parser("run", help="have it run now, besides its times")
    run_now.add_argument(
        "--request-id", metavar="ID", help="the same id again runs nothing more"
    )
    remove = actions.add_parser("remove", help="forget it; its jobs stay")
    activate = actions.add_parser(
        "activate",
        help="have one that wakes a controller go live with the next start",
    )
    for named in (show, ahead, pause, resume, run_now, remove, activate):
        named.add_argument("name", metavar="SCHEDULE", help="what it is called")
    check = actions.add_parser("check", help="say what is wrong with a file")
    apply = actions.add_parser(
        "apply", help="have the schedules of a file be as it says, and no others of it"
    )
    apply.add_argument(
        "--dry-run", action="store_true", help="change nothing, say what would"
    )
    for of_file in (check, apply):
        of_file.add_argument("file", metavar="FILE", help="schedules in TOML")
    for action in actions.choices.values():
        add_common(action, again=True)


def _add_times(parser: argparse.ArgumentParser) -> None:
    when = parser.add_mutually_exclusive_group()
    when.add_argument(
        "--every",
        metavar="TIME",
        help="an interval, such as 15m; with --on the least time between two starts,"
        " with issues how often GitHub is asked (5m)",
    )
    when.add_argument(
        "--cron",
        metavar="FIELDS",
        help='minute, hour, day, month and weekday: "30 2 * * mon-fri", or @daily',
    )
    when.add_argument("--at", metavar="TIME", help="once, such as 2026-01-02T03:04")
    when.add_argument(
        "--manual", action="store_true", help="only by forge-actors schedule run"
    )
    parser.add_argument(
        "--on",
        metavar="CAUSE",
        help="when something comes to pass: clean, succeeded:JOBS, ended:JOBS,"
        " all:JOBS,JOBS, branch:NAME, file:PATTERN, issues or"
        " issues:OWNER/NAME,label:LABEL; JOBS is a name, label:NAME, kind:KIND,"
        " schedule:NAME, job:ID or *",
    )
    parser.add_argument(
        "--timezone", metavar="ZONE", help="IANA name (default: that of this machine)"
    )


def _add_wake(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--wake",
        metavar="CONTROLLER",
        help="wake this controller in place of submitting a job; it is a shadow until"
        " edit NAME --no-shadow, or activate NAME",
    )


def _add_policies(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--misfire",
        choices=_MISFIRES,
        help="of times that passed while nothing could run: none runs, the last one,"
        " or all (once)",
    )
    add("--catch-up", metavar="TIME", help="later than this a time is missed (1d)")
    add("--catch-up-most", type=int, metavar="N", help="with all, at most N (10)")
    add(
        "--overlap",
        choices=_OVERLAPS,
        help="while a job of it lives: do not run, wait for it, or cancel it (skip)",
    )
    add("--jitter", metavar="TIME", help="come later by a part of this")
    add("--cooldown", metavar="TIME", help="from the end of a job to the next start")
    add("--daily-budget", metavar="TIME", help="that its jobs may run in a day, UTC")
    add(
        "--max-failures",
        type=int,
        metavar="N",
        help="pause after N failures in a row; 0 is never (10)",
    )
    add("--backoff", metavar="TIME", help="wait after a failure, doubled with each")
    add("--max-backoff", metavar="TIME", help="the longest such wait (1d)")
    add("--max-runs", type=int, metavar="N", help="be done after N jobs")
    add("--until", metavar="TIME", help="be done at this time")
    add(
        "--when-clean",
        action=argparse.BooleanOptionalAction,
        help="not while the checkout has changes that are not committed",
    )
    add(
        "--not-while",
        action="append",
        choices=_HINDRANCES,
        help="not while a job of the repository waits for a person's approval, or a"
        " release gate of it has not ended; may be given again (nothing)",
    )
    add(
        "--shadow",
        action=argparse.BooleanOptionalAction,
        help="decide and tell, but submit nothing",
    )


def run(args: argparse.Namespace) -> int:
    if args.command is not None and args.action not in ("add", "edit"):
        raise UsageError(f"schedule {args.action} takes no command behind --")
    service = Service(args.home)
    match args.action:
        case "add":
            return _add(service, args)
        case "edit":
            return _edit(service, args)
        case "list":
            views = service.get("schedules")["schedules"]
            _print(args, views, lambda: listing(views))
        case "show":
            return _show(service, args)
        case "next":
            query = [("count", args.count)]
            times = service.get("schedules", args.name, "next", query=query)["times"]
            _print(args, times, lambda: told(times))
        case "run":
            body = {"request_id": args.request_id}
            done = service.post("schedules", args.name, "run", body=body)
            _print(args, done, lambda: [done["id"]])
        case "activate":
            path = mark(resolve_home(args.home), args.name)
            _print(args, {"mark": path}, lambda: [path])
        case "pause" | "resume":
            view = service.post("schedules", args.name, args.action)
            _print(args, view, lambda: [f"{view['name']} {view['state']}"])
        case "remove":
            view = service.delete("schedules", args.name)
            _print(args, view, lambda: [view["name"]])
        case _:
            return _apply(service, args)
    return 0


def _print(args: argparse.Namespace, value: Any, lines: Any) -> None:
    if args.json:
        print_json(value)
    else:
        for line in lines():
            print(clean(line))


def _add(service: Service, args: argparse.Namespace) -> int:
    if args.wake is not None:
        if args.command or args.agent is not None:
            raise UsageError("a schedule wakes a controller, or has a command")
    elif not args.command and args.agent is None:
        raise UsageError(
            "no command: put it behind --, as in: schedule add nightly"
            ' --cron "0 2 * * *" -- make test'
        )
    job = {} if args.wake is not None else _job(args)
    view = service.post("schedules", body={**_wanted(args), "job": job})
    _print(args, view, lambda: [view["name"]])
    if view["next"] is not None and not args.json:
        note(f"{view['name']} comes next at {view['next']}")
    elif view["waits_for"] is not None and not args.json:
        note(f"{view['name']} comes when {view['waits_for']}")
    return 0


def _edit(service: Service, args: argparse.Namespace) -> int:
    known = service.get("schedules", args.name)
    before = known["definition"]
    changes = _wanted(args, repo=args.repo is not None)
    times = {name for name in _TIMES if name in changes}
    # With --on an interval is no time of its own.
    if times and not (times == {"every"} and "on" in before):
        for name in (*_TIMES, "timezone"):
            before.pop(name, None)
    another = args.command or args.agent is not None
    if another:
        before.pop("wake", None)
    job = _job(args) if another else _changed(before["job"], args)
    if args.wake is not None or before.get("wake") is not None:
        job = {}
    wanted = {**before, **changes, "job": job}
    revision = known["revision"] if args.revision is None else args.revision
    body = {"schedule": wanted, "revision": revision}
    view = service.post("schedules", args.name, "edit", body=body)
    _print(args, view, lambda: [view["name"]])
    return 0


def _changed(job: dict[str, Any], args: argparse.Namespace) -> dict[str, Any]:
    """The same job with what the options say of it."""
    given = _job(args)
    given.pop("argv", None)
    if args.cwd is None:
        given.pop("cwd", None)
        if args.repo is not None:  # its folder was in the other one
            job = {name: value for name, value in job.items() if name != "cwd"}
    if "env" in given:
        given["env"] = {**job.get("env", {}), **given["env"]}
    return {**job, **given}


def _wanted(args: argparse.Namespace, *, repo: bool = True) -> dict[str, Any]:
    """What the options say of a schedule, but its job."""
    wanted: dict[str, Any] = {"name": args.name}
    if repo:
        wanted["repo"] = job_of(args)["repo"]
    for name in _PLAIN:
        value = getattr(args, name)
        if value is not None:
            wanted[name] = value
    if args.manual:
        wanted["manual"] = True
    for name in _FLAGS:
        value = getattr(args, name)
        if value is not None:
            wanted[name] = value
    if "not_while" in wanted:
        named = [name for name in wanted["not_while"] if name != "nothing"]
        wanted["not_while"] = named
    return wanted


def _job(args: argparse.Namespace) -> dict[str, Any]:
    """The job that the options describe, of whatever repository."""
    job = job_of(args)
    return {name: value for name, value in job.items() if value and name != "repo"}


def _show(service: Service, args: argparse.Namespace) -> int:
    view = service.get("schedules", args.name)
    query = [("limit", args.count)]
    past = service.get("schedules", args.name, "occurrences", query=query)
    occurrences = past["occurrences"]
    if args.json:
        print_json({**view, "occurrences": occurrences})
    else:
        for line in detail(view, occurrences):
            print(clean(line))
    return 0


def _apply(service: Service, args: argparse.Namespace) -> int:
    schedules = read_schedules(args.file)
    dry_run = args.action == "check" or args.dry_run
    body = {
        "source": os.path.realpath(args.file),
        "schedules": schedules,
        "dry_run": dry_run,
    }
    done = service.post("schedules", "apply", body=body)
    if args.json:
        print_json(done)
        return 0
    for word in ("added", "changed", "removed"):
        for name in done[word]:
            print(clean(f"{word} {name}"))
    if args.action == "check":
        note(f"{args.file} is good: {len(schedules)} schedules")
    elif dry_run:
        note("nothing was changed")
    return 0
