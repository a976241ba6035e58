"""`completions`: a script that lets a shell complete verbs, options, jobs and names."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING

from forge_actors.cli.job_text import TAIL
from forge_actors.cli.verb import UsageError, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.cli.grammar import Grammar

HELP = (
    "Print a script that lets a shell complete verbs, options, states and kinds, and\n"
    "from the service of the home ids of jobs, names of repositories and of templates."
)
EXAMPLES = """\
  eval "$(forge-actors completions bash)"  # in ~/.bashrc; zsh: the same in ~/.zshrc
  forge-actors completions fish > ~/.config/fish/completions/forge-actors.fish
"""
SHELLS = ("bash", "zsh", "fish")
#: What scripts ask for while somebody types.
WORDS = ("jobs", "active", "repos", "templates")
#: Jobs that are offered, the newest first.
MOST_JOBS = 100
#: A shell would take anything else for its own.
_PLAIN = re.compile(r"[a-zA-Z0-9._-]+")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", nargs="?", choices=SHELLS, metavar="bash|zsh|fish")
    parser.add_argument("--words", choices=WORDS, help=argparse.SUPPRESS)
    parser.add_argument("--starting", default="", help=argparse.SUPPRESS)


def run(args: argparse.Namespace) -> int:
    if args.words is not None:
        _print_words(args)
        return 0
    if args.shell is None:
        raise UsageError("which shell? bash, zsh or fish")
    from forge_actors.cli.grammar import grammar

    text = _script(args.shell)(grammar())
    if args.json:
        print_json({"shell": args.shell, "script": text})
    else:
        print(text, end="")
    return 0


def _script(shell: str) -> Callable[[Grammar], str]:
    import importlib

    module = importlib.import_module(f"forge_actors.cli.completion_{shell}")
    script: Callable[[Grammar], str] = module.script
    return script


def _print_words(args: argparse.Namespace) -> None:
    """What could be meant, a word a line; nothing at all if nothing answers."""
    try:
        words = _words(Service(args.home), args.words, args.starting)
    except (ForgeError, OSError):
        return
    found = [word for word in words if _PLAIN.fullmatch(word)]
    if args.json:
        print_json(found)
    else:
        print("".join(f"{word}\n" for word in found), end="")


def _words(service: Service, kind: str, start: str) -> list[str]:
    if kind == "repos":
        views = service.get("repositories")["repositories"]
        return [view["name"] for view in views if view["name"].startswith(start)]
    if kind == "templates":
        names = {view["name"] for view in service.get("templates")["templates"]}
        return sorted(name for name in names if name.startswith(start))
    query: list[tuple[str, str | int | None]] = [("limit", MOST_JOBS)]
    if kind == "active":
        query.append(("active", 1))
    ids = [job["id"] for job in service.get("jobs", query=query)["jobs"]]
    tails = [job[-TAIL:] for job in ids if job[-TAIL:].startswith(start)]
    # A whole id only where its beginning was typed: it says less than its tail.
    return tails or [job for job in ids if job.startswith(start)]
