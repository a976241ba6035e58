"""What the verbs have in common: their options, how they are parsed, how they print.

A verb is a module with `HELP` (a sentence), `EXAMPLES` (lines), `configure(parser)` and
`run(args) -> int`; with `TAKES_COMMAND` the words behind `--` are in `args.command`.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import TYPE_CHECKING, Any, NoReturn

from forge_actors.cli.text import DEFAULT_WIDTH, clean, terminal_width
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

#: Exit status of a wait whose time ran out.
TIMED_OUT = 5

_UNRECOGNIZED = "unrecognized arguments: "


class UsageError(ForgeError):
    """The command line makes no sense."""

    code = "USAGE"
    exit_code = 2


class Help(argparse.RawDescriptionHelpFormatter):
    """Help that fits the terminal. argparse would load `shutil` to ask for its width,
    for every option of every call."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=(terminal_width() or DEFAULT_WIDTH) - 2)


class Parser(argparse.ArgumentParser):
    """argparse, which raises what it finds wrong instead of leaving the program."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, formatter_class=Help, **options)

    def error(self, message: str) -> NoReturn:
        hint = ""
        message = _plain(message)
        if message.startswith(_UNRECOGNIZED):
            word = message.removeprefix(_UNRECOGNIZED).split(" ")[0].split("=")[0]
            known = [text for action in self._actions for text in action.option_strings]
            hint = near_miss(word, known)
            message = f"there is no option {word}"
            if not word.startswith("-"):
                message = f"{word!r} is one word too many"
        raise UsageError(f"{message}{hint or f'; see {self.prog} --help'}")


def _plain(message: str) -> str:
    """What argparse says of the value of an option, as all our errors say it."""
    name, colon, problem = message.removeprefix("argument ").partition(": ")
    if not colon or not message.startswith("argument "):
        return message
    if problem == "expected one argument":
        last = name.rpartition("/")[2]
        problem = f"a value is missing; one that begins with - is written {last}=-..."
    elif problem.startswith("invalid int value: "):
        problem = f"{problem.removeprefix('invalid int value: ')} is no whole number"
    elif problem.startswith("invalid choice: "):
        word, _, known = problem.removeprefix("invalid choice: ").partition(" (")
        allowed = known.removeprefix("choose from ").removesuffix(")").replace("'", "")
        hint = near_miss(word.strip("'"), allowed.split(", "))
        problem = f"{word} is unknown{hint} (allowed: {allowed})"
    return f"{name}: {problem}"


def make_parser(verb: str, module: ModuleType) -> Parser:
    """The parser of one verb, with the options that every verb has."""
    parser = Parser(
        prog=f"forge-actors {verb}",
        description=module.HELP,
        epilog=f"examples:\n{module.EXAMPLES.rstrip()}",
    )
    module.configure(parser)
    add_common(parser)
    return parser


def run_verb(verb: str, module: ModuleType, words: list[str]) -> int:
    parser = make_parser(verb, module)
    # Split here: argparse has changed its mind about `--` between versions.
    command: list[str] | None = None
    if "--" in words:
        place = words.index("--")
        words, command = words[:place], words[place + 1 :]
    if command is not None and not getattr(module, "TAKES_COMMAND", False):
        raise UsageError(f"forge-actors {verb} takes no command behind --")
    args = parser.parse_args(words)
    args.command = command
    status: int = module.run(args)
    return status


def add_common(parser: argparse.ArgumentParser, *, again: bool = False) -> None:
    """The options every verb has; `again` below a parser that has them too."""
    default = argparse.SUPPRESS if again else None
    parser.add_argument(
        "--home",
        metavar="DIR",
        default=default,
        help="home of the service (default: $FORGE_CONTROLLER_HOME, else"
        " ~/.local/state/forge-actors)",
    )
    parser.add_argument(
        "--json", action="store_true", default=default or False, help="print JSON"
    )


def near_miss(word: str, known: Iterable[str]) -> str:
    """`; did you mean …?`, or nothing if no known word is near."""
    import difflib

    matches = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {matches[0]}?" if matches else ""


def print_json(value: object) -> None:
    print(json.dumps(value, indent=2))


def note(text: str) -> None:
    """Tell the user something that is not the result."""
    print(clean(f"forge-actors: {text}"), file=sys.stderr)


def origin() -> str:
    """What marks a job as submitted from here: by a job, or by a user."""
    parent = os.environ.get("FORGE_JOB_ID")
    return f"job:{parent}" if parent else "cli"


def repository(text: str) -> str:
    """A repository as the service knows it: a name, or a path made absolute.

    Raises:
        UsageError: it is empty.
    """
    if not text:
        raise UsageError(
            "an empty word is no repository: give its name or a path in it"
        )
    if os.sep in text or text in (".", "..") or text.startswith("~"):
        return os.path.abspath(os.path.expanduser(text))
    return text
