"""`continue`: ask the agent of a job that has ended for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.prompts import add_prompt, prompt_of
from forge_actors.cli.verb import UsageError, origin, print_json
from forge_actors.client.sync import Service

if TYPE_CHECKING:
    import argparse

HELP = (
    "Ask the agent of a job that has ended for more: a new job, whose id is printed,\n"
    "in the same session and the same worktree. Where the session is gone it begins a\n"
    "new one there, with a summary of the old one, and show says so."
)
EXAMPLES = """\
  forge-actors continue 4f2k9x "Now add a test for it."
  forge-actors continue 4f2k9x --prompt-file more.md
"""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", metavar="JOB", help="its id, or 4 characters of it")
    prompt = parser.add_mutually_exclusive_group()
    prompt.add_argument(
        "text", nargs="?", metavar="PROMPT", help="what to do now; - reads the input"
    )
    add_prompt(prompt)


def run(args: argparse.Namespace) -> int:
    given = args.text is not None and args.text != "-"
    prompt = args.text if given else prompt_of(args, from_input=args.text == "-")
    if prompt is None:
        raise UsageError(
            'what is it to do? forge-actors continue JOB "PROMPT", or --prompt-file'
        )
    body = {"prompt": prompt, "origin": origin()}
    made = Service(args.home).post("jobs", args.job, "continue", body=body)
    if args.json:
        print_json(made)
    else:
        print(made["id"])
    return 0
