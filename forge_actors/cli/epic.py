"""`epic`: the issues of a GitHub issue, or of a plan, worked through one by one."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from forge_actors.cli import epic_service
from forge_actors.cli.out_file import write_out
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.home import resolve_home
from forge_actors.domain.errors import ForgeError, NotFound, Refused

if TYPE_CHECKING:
    import argparse
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.epic.views import EpicView
    from forge_actors.runtime.epic_looks import Kept
    from forge_actors.runtime.epic_run import EpicOptions

R = TypeVar("R")

HELP = (
    "Work through the sub-issues of a GitHub issue, or through a plan in files: each\n"
    "issue that waits for no other gets a worker, a worktree and a branch. Nothing is\n"
    "merged, and nothing is written to GitHub unless the settings say so. Workers go\n"
    "on if this ends or is killed; the next run finds out what became of them."
)
EXAMPLES = """\
  forge-actors epic plan https://github.com/octo/demo/issues/7
  forge-actors epic run https://github.com/octo/demo/issues/7 --agent claude
  forge-actors epic run plan.toml --detach
"""


class NotBegun(ForgeError):
    """The run was refused at its start."""

    code = "EPIC_NOT_BEGUN"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_it = actions.add_parser("run", help="work through an EPIC")
    resume = actions.add_parser("resume", help="the same, with what was left open")
    plan = actions.add_parser("plan", help="show what a run would do")
    status = actions.add_parser("status", help="show what a run does, or did")
    stop = actions.add_parser("stop", help="ask a run to end")
    listed = actions.add_parser("list", help="the runs of the service, newest first")
    wait = actions.add_parser("wait", help="wait until a run of the service has ended")
    for needed in (run_it, resume, plan):
        needed.add_argument("epic", metavar="EPIC", help="URL of an issue, or a plan")
    for known in (status, stop):
        known.add_argument(
            "epic",
            metavar="EPIC",
            nargs="?",
            help="URL of an issue, or a plan; or the id of a run of the service",
        )
    wait.add_argument("epic", metavar="RUN", help="its id, or the beginning of it")
    wait.add_argument(
        "--timeout", metavar="TIME", help="how long to wait, for example 90s or 2h"
    )
    listed.add_argument("--active", action="store_true", help="that have not ended")
    listed.add_argument(
        "--limit", type=int, default=50, metavar="N", help="at most N (50)"
    )
    for running in (run_it, resume):
        running.add_argument(
            "--max-parallel", type=int, metavar="N", help="at most N workers at once"
        )
        running.add_argument("--agent", metavar="NAME", help="who implements, reviews")
        running.add_argument(
            "--force",
            action="store_true",
            help="go on although claims are open, and move aside what cannot be read",
        )
        running.add_argument(
            "--accept-config-change",
            action="store_true",
            help="go on with other settings than the work began with",
        )
        running.add_argument(
            "--plain", action="store_true", help="only lines, no live tree"
        )
        running.add_argument(
            "--detach",
            action="store_true",
            help="have the service do it, and print the id of the run",
        )
        running.add_argument(
            "--repo", metavar="REPO", help="with --detach: a repository by its name"
        )
        running.add_argument(
            "--request-id",
            metavar="ID",
            help="with --detach: the same id again begins nothing more",
        )
    plan.add_argument("--svg", metavar="FILE", help="draw the graph; - is stdout")
    plan.add_argument("--max-parallel", type=int, metavar="N", help="as of a run")
    status.add_argument("--svg", metavar="FILE", help="draw the graph; - is stdout")
    status.add_argument("--watch", action="store_true", help="again at each change")
    how = stop.add_mutually_exclusive_group()
    how.add_argument(
        "--drain",
        action="store_true",
        help="let workers come to their next boundary (this is so without it)",
    )
    how.add_argument("--now", action="store_true", help="interrupt the workers")
    stop.add_argument("--follow", action="store_true", help="return when it has ended")
    for action in (run_it, resume, plan, status, stop):
        action.add_argument(
            "--checkout", metavar="DIR", help="a folder of the repository (.)"
        )
        action.add_argument("--config", type=Path, metavar="FILE", help="its settings")
    for action in (run_it, resume, plan, status, stop, listed, wait):
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    match args.action:
        case "run" | "resume":
            return epic_service.begin(args) if args.detach else _run(args)
        case "plan":
            return _plan(args)
        case "list":
            return epic_service.listed(args)
        case "wait":
            return epic_service.wait(args)
        case "status":
            served = epic_service.is_run(args.epic)
            return epic_service.status(args) if served else _status(args)
        case _:
            served = epic_service.is_run(args.epic)
            return epic_service.stop(args) if served else _stop(args)


def _trio(what: Callable[..., Awaitable[R]], *args: object) -> R:
    """Run it; what fails in a nursery of it is one failure to people."""
    import trio

    from forge_actors.runtime.groups import only_failure

    try:
        return trio.run(what, *args)
    except BaseExceptionGroup as group:
        raise only_failure(group) from None


def _options(args: argparse.Namespace) -> EpicOptions:
    from forge_actors.runtime.epic_run import EpicOptions

    return EpicOptions(
        target=args.epic or "",
        folder=os.path.abspath(args.checkout or "."),
        home=Path(resolve_home(args.home)),
        config=None if args.config is None else args.config.absolute(),
        max_parallel=getattr(args, "max_parallel", None),
        agent=getattr(args, "agent", None),
        resume=args.action == "resume",
        force=getattr(args, "force", False),
        accept_config_change=getattr(args, "accept_config_change", False),
    )


def _run(args: argparse.Namespace) -> int:
    from forge_actors.cli.epic_view import LiveTree, Plain
    from forge_actors.runtime.epic_run import run_epic

    if args.repo is not None or args.request_id is not None:
        raise UsageError("--repo, --request-id: belong to a service, so to --detach")
    options = _options(args)
    if sys.stderr.isatty() and not args.plain and not args.json:
        with LiveTree() as tree:
            run_it = partial(run_epic, options, tree.line, tree.passed)
            end = _trio(tree.run, run_it)
        return end.status
    plain, said = Plain(), [""]

    def out(line: str) -> None:
        said[0] = line
        note(line)

    end = _trio(run_epic, options, out, plain.passed)
    if args.json and end.reason is None:
        raise NotBegun(said[0])
    if args.json:
        _show(args, plain.view() or _trio(_recorded, args))
    return end.status


async def _recorded(args: argparse.Namespace) -> EpicView:
    """What the files say of the run; its graph could not be read."""
    from forge_actors.runtime.epic_looks import kept_epic

    async with kept_epic(_options(args)) as kept:
        return kept.view()


def _plan(args: argparse.Namespace) -> int:
    from forge_actors.cli.epic_text import starts
    from forge_actors.runtime.epic_looks import as_json, plan_epic
    from forge_actors.runtime.epic_run import load_settings
    from forge_actors.runtime.epic_settings import parallel

    options = _options(args)
    limit = parallel(options.max_parallel, load_settings(options).epic)
    view = _trio(plan_epic, options, note)
    if not _show(args, view):
        _print(as_json(view))
        print("\n".join(starts(as_json(view), limit)))
    return 0


def _status(args: argparse.Namespace) -> int:
    if args.watch and args.epic is None:
        raise UsageError("--watch: belongs to one EPIC: name it")
    return _trio(_look if args.epic is None else _follow, args)


async def _look(args: argparse.Namespace) -> int:
    """All EPICs of the repository."""
    from forge_actors.runtime.epic_looks import as_json, kept_epic, known_epics

    if args.svg is not None:
        raise UsageError("--svg: belongs to one EPIC: name it")
    options, views, status = _options(args), [], 0
    for known in await known_epics(options.folder):
        async with kept_epic(options, known) as kept:
            try:
                views.append(kept.view())
            except NotFound:  # it was made, and never run
                continue
            except ForgeError as error:  # that one hides no other
                note(f"EPIC #{kept.number}: {error}")
                status = 1
    served = epic_service.served_views(args.home) if views else {}
    shown = [served.get(view.invocation or "") or as_json(view) for view in views]
    if args.json:
        print_json(shown)
        return status
    for each in shown:
        _print(each)
    if not views and not status:
        note("no EPIC was ever run in this repository")
    return status


async def _follow(args: argparse.Namespace) -> int:
    """One EPIC, and again at each change if that is wanted, until it has ended."""
    from forge_actors.runtime.epic_looks import kept_epic

    shown = None
    async with kept_epic(_options(args)) as kept:
        while True:
            async with kept.watched() as changed:
                view = kept.view()
                if view != shown:
                    _tell(args, view)
                shown = view
                if not args.watch or not kept.is_alive:
                    return 0
                await changed()


def _tell(args: argparse.Namespace, view: EpicView) -> None:
    """Show it, where a service works on it as that knows it: with titles and jobs."""
    from forge_actors.runtime.epic_looks import as_json

    if args.svg is not None:
        _show(args, view)
        return
    served = epic_service.served_views(args.home)
    told = served.get(view.invocation or "") or as_json(view)
    if args.json:
        print_json(told)
    else:
        _print(told)


def _stop(args: argparse.Namespace) -> int:
    return _trio(_ask_to_stop, args)


async def _ask_to_stop(args: argparse.Namespace) -> int:
    from forge_actors.runtime.epic_looks import kept_epic, known_epics

    options, known = _options(args), None
    if args.epic is None:
        known = await _only_running(options, await known_epics(options.folder))
    async with kept_epic(options, known) as kept:
        mode = "now" if args.now else "drain"
        invocation = kept.ask_to_stop("now" if args.now else "drain")
        who = f"EPIC #{kept.number} is asked to stop ({mode}): {invocation}"
        if not kept.has_scheduler:
            who = (
                f"the scheduler of EPIC #{kept.number} runs no more: its workers are"
                " asked to end at their next boundary"
            )
        note(who)
        while args.follow:
            async with kept.watched() as changed:
                if not _goes_on(kept, invocation):
                    break
                await changed()
        run = kept.record().invocation
        has_ended = args.follow and run.id == invocation
        if has_ended:
            note(f"EPIC #{kept.number} has ended: {run.end_reason or 'killed'}")
        if args.json:
            reason = run.end_reason if has_ended else None
            told = {"epic": kept.number, "mode": mode, "invocation": invocation}
            print_json({**told, "end_reason": reason})
    return 0


async def _only_running(
    options: EpicOptions, known: list[tuple[tuple[str, ...], int]]
) -> tuple[tuple[str, ...], int]:
    """The EPIC that runs: there is one in a repository at most."""
    from forge_actors.runtime.epic_looks import kept_epic

    for each in known:
        async with kept_epic(options, each) as kept:
            with suppress(ForgeError):  # none runs with a record that is broken
                if kept.is_alive:
                    return each
    raise Refused("no EPIC runs in this repository: nothing is to be stopped")


def _goes_on(kept: Kept, invocation: str) -> bool:
    return kept.record().invocation.id == invocation and kept.is_alive


def _show(args: argparse.Namespace, view: EpicView) -> bool:
    """Show it as a program or a picture wants it; whether that was asked for."""
    svg = getattr(args, "svg", None)
    if svg is not None:
        from forge_actors.domain.picture.epic import picture

        write_out(svg, picture(view))
    elif args.json:
        from forge_actors.runtime.epic_looks import as_json

        print_json(as_json(view))
    return args.json or svg is not None


def _print(view: dict[str, Any]) -> None:
    from forge_actors.cli.epic_text import detail

    print("\n".join([*detail(view), ""]), flush=True)
