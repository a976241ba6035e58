"""`epic`: the issues of a GitHub issue, or of a plan, worked through one by one."""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from forge_actors.cli.out_file import write_out
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.home import resolve_home

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
  forge-actors epic stop --drain
"""


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    run_it = actions.add_parser("run", help="work through an EPIC")
    resume = actions.add_parser("resume", help="the same, with what was left open")
    plan = actions.add_parser("plan", help="show what a run would do")
    status = actions.add_parser("status", help="show what a run does, or did")
    stop = actions.add_parser("stop", help="ask a run to end")
    for needed in (run_it, resume, plan):
        needed.add_argument("epic", metavar="EPIC", help="URL of an issue, or a plan")
    for known in (status, stop):
        known.add_argument(
            "epic", metavar="EPIC", nargs="?", help="URL of an issue, or a plan"
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
        add_common(action, again=True)


def run(args: argparse.Namespace) -> int:
    if args.action in ("run", "resume"):
        return _run(args)
    if args.action == "plan":
        return _plan(args)
    return _status(args) if args.action == "status" else _stop(args)


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

    options = _options(args)
    if sys.stderr.isatty() and not args.plain and not args.json:
        with LiveTree() as tree:
            run_it = partial(run_epic, options, tree.line, tree.passed)
            end = _trio(tree.run, run_it)
        return end.status
    plain = Plain()
    end = _trio(run_epic, options, note, plain.passed)
    if args.json and (view := plain.view()) is not None:
        _show(args, view)
    return end.status


def _plan(args: argparse.Namespace) -> int:
    from forge_actors.cli.epic_text import starts
    from forge_actors.runtime.epic_looks import as_json, plan_epic
    from forge_actors.runtime.epic_run import load_settings
    from forge_actors.runtime.epic_settings import parallel

    options = _options(args)
    limit = parallel(options.max_parallel, load_settings(options).epic)
    view = _trio(plan_epic, options)
    if not _show(args, view):
        _print(view)
        print("\n".join(starts(as_json(view), limit)))
    return 0


def _status(args: argparse.Namespace) -> int:
    if args.watch and args.epic is None:
        raise UsageError("--watch: belongs to one EPIC: name it")
    return _trio(_look if args.epic is None else _follow, args)


async def _look(args: argparse.Namespace) -> int:
    """All EPICs of the repository."""
    from forge_actors.runtime.epic_looks import as_json, kept_epic, known_epics

    options, views = _options(args), []
    for known in await known_epics(options.folder):
        async with kept_epic(options, known) as kept:
            views.append(kept.view())
    if args.svg is not None:
        raise UsageError("--svg: belongs to one EPIC: name it")
    if args.json:
        print_json([as_json(view) for view in views])
        return 0
    for view in views:
        _print(view)
    if not views:
        note("no EPIC was ever run in this repository")
    return 0


async def _follow(args: argparse.Namespace) -> int:
    """One EPIC, and again at each change if that is wanted, until it has ended."""
    from forge_actors.runtime.epic_looks import kept_epic

    async with kept_epic(_options(args)) as kept:
        while True:
            view = kept.view()
            if not _show(args, view):
                _print(view)
            if not args.watch or not kept.is_alive:
                return 0
            await kept.changed()


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
        while args.follow and _goes_on(kept, invocation):
            await kept.changed()
    return 0


async def _only_running(
    options: EpicOptions, known: list[tuple[tuple[str, ...], int]]
) -> tuple[tuple[str, ...], int]:
    """The EPIC that runs: there is one in a repository at most."""
    from forge_actors.runtime.epic_looks import kept_epic

    for each in known:
        async with kept_epic(options, each) as kept:
            if kept.is_alive:
                return each
    raise UsageError("no EPIC runs in this repository: nothing is to be stopped")


def _goes_on(kept: Kept, invocation: str) -> bool:
    return kept.record().invocation.id == invocation and kept.is_alive


def _show(args: argparse.Namespace, view: EpicView) -> bool:
    """Show it as a program or a picture wants it; whether that was asked for."""
    if args.svg is not None:
        from forge_actors.domain.picture.epic import picture

        write_out(args.svg, picture(view))
    elif args.json:
        from forge_actors.runtime.epic_looks import as_json

        print_json(as_json(view))
    return args.json or args.svg is not None


def _print(view: EpicView) -> None:
    from forge_actors.cli.epic_text import detail
    from forge_actors.runtime.epic_looks import as_json

    print("\n".join([*detail(as_json(view)), ""]), flush=True)
