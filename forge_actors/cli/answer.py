"""`answer`: answer what the agent of a job asks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from forge_actors.cli.text import clean
from forge_actors.cli.verb import UsageError, print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse

HELP = (
    "Answer what the agent of a job asks: it goes on in the same session, with this\n"
    "text as its input. `why JOB` and `inbox` show the question. Each question can be\n"
    "answered once."
)
EXAMPLES = """\
  forge-actors answer 4f2k9x "Take the second one."
  forge-actors answer 4f2k9x --file answer.md
  forge-actors answer 4f2k9x - < answer.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB")
    parser.add_argument(
        "text", nargs="?", metavar="TEXT", help="the answer; - reads the input"
    )
    parser.add_argument("--file", metavar="FILE", help="the same from a file")


def run(args: argparse.Namespace) -> int:
    if (args.text is None) == (args.file is None):
        raise UsageError("the answer is TEXT, - for the input, or --file FILE")
    service = Service(args.home)
    body = {"text": _text(args)}
    view = service.post("jobs", args.job, "answer", body=body)
    if args.json:
        print_json(view)
    else:
        print(clean(view["id"]))
    return 0


def _text(args: argparse.Namespace) -> str:
    if args.file is None and args.text != "-":
        text: str = args.text
        return text
    source = args.file if args.file is not None else "-"
    try:
        if source == "-":
            return sys.stdin.buffer.read().decode()
        with open(source, "rb") as file:
            return file.read().decode()
    except UnicodeDecodeError:
        raise InvalidInput("text", f"{source} is no UTF-8 text") from None
