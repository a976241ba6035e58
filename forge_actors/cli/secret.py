"""`secret`: set, list and remove the secrets of a home. Needs no service."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from forge_actors.cli.text import table, terminal_width
from forge_actors.cli.verb import UsageError, add_common, note, print_json
from forge_actors.client.home import resolve_home
from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.secrets import (
    LEAST_MASKED,
    MAX_BYTES,
    SecretFolder,
    check_name,
    checked_value,
)

if TYPE_CHECKING:
    import argparse

HELP = (
    "Set, list or remove values that jobs get as variables (submit --secret NAME).\n"
    "A value is read from standard input and never shown again."
)
EXAMPLES = """\
  forge-actors secret set API_TOKEN < token.txt
  forge-actors secret list
  forge-actors secret remove API_TOKEN
"""
HEAD = ("NAME", "CHANGED")
#: A value of one word that is shorter may well be in a log by itself.
SHORT_WORD = 12


def configure(parser: argparse.ArgumentParser) -> None:
    import argparse

    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    set_ = actions.add_parser("set", help="set one; its value is standard input")
    # Taken, so that what is refused as one word too many is not repeated.
    set_.add_argument("value", nargs="*", help=argparse.SUPPRESS)
    listing = actions.add_parser("list", help="list names, never values")
    remove = actions.add_parser("remove", help="forget one")
    remove.add_argument("name", metavar="NAME")
    for action in (set_, listing, remove):
        add_common(action, again=True)
    set_.usage = "forge-actors secret set [--home DIR] [--json] NAME < FILE"


def run(args: argparse.Namespace) -> int:
    folder = SecretFolder(resolve_home(args.home))
    if args.action == "list":
        return _list(folder, args)
    if args.action == "set":
        name = _set(folder, args.value)
    else:
        name = args.name
        check_name(name, field="name")
        folder.remove(name)
    if args.json:
        print_json({"name": name})
    else:
        print(name)
    return 0


def _set(folder: SecretFolder, words: list[str]) -> str:
    if len(words) != 1:
        problem = "give a name" if not words else "give one name and nothing else"
        raise UsageError(f"{problem}; the value is read from standard input")
    [name] = words
    check_name(name, field="name")
    value = checked_value(_typed(name) if sys.stdin.isatty() else _piped())
    folder.write(name, value)
    if len(value) < LEAST_MASKED:
        note(
            f"{name} has fewer than {LEAST_MASKED} bytes, too few to be told from other"
            " text: it will not be masked in the output of jobs"
        )
    elif len(value) < SHORT_WORD and value.isalpha():
        note(
            f"{name} is a short word: wherever it is in the output of a job that has"
            " this secret, the log shows [redacted]"
        )
    return name


def _piped() -> bytes:
    # One byte more than a newline behind the longest, to see that it is too long.
    return sys.stdin.buffer.read(MAX_BYTES + 3)


def _typed(name: str) -> bytes:
    """What is typed at the terminal, which does not show it."""
    import getpass
    import os

    try:
        return os.fsencode(getpass.getpass(f"value of {name}: "))
    except EOFError:
        raise InvalidInput("value", "is empty, or nothing but white space") from None


def _list(folder: SecretFolder, args: argparse.Namespace) -> int:
    from datetime import UTC, datetime

    rows = []
    for name in folder.names():
        moment = datetime.fromtimestamp(int(folder.changed_at(name)), UTC)
        rows.append((name, moment.isoformat().replace("+00:00", "Z")))
    if args.json:
        print_json([{"name": name, "changed_at": moment} for name, moment in rows])
    elif rows:
        print("\n".join(table(HEAD, rows, columns=terminal_width(), flexible=[0])))
    else:
        note("no secret is set")
    return 0
