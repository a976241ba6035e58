"""Commands of the pages that are not run, each with its reason."""

from __future__ import annotations

import re
import shlex

from forge_actors.cli.main import VERBS, _load
from forge_actors.cli.verb import make_parser

#: What other programs the commands need: a command begins so, and why it is not run.
#: Those of ours are looked at all the same: their options have to be there.
NOT_RUN = {
    "claude mcp add": "it changes how a program of others is set up",
    "git clone": "there is no address to clone from",
    "make": "it makes an environment of its own and runs for minutes",
    ".venv/bin/": "it runs for minutes, in an environment of its own",
    "python -m benchmarks": "it measures for minutes",
    "python -m forge_actors.testing.simulation": "it runs for a minute",
    "pip ": "it installs",
    "forge-actors watch": "it takes a terminal for itself",
    "forge-actors service": "it asks the service manager of the user",
    "forge-actors webhook test": "nobody is there who could be told",
}
#: What stands behind a command, for people.
COMMENT = re.compile(r"(^| )#.*$")


def reason_not_to_run(text: str) -> str | None:
    """Why a command is not run; None if it is."""
    return next((why for start, why in NOT_RUN.items() if text.startswith(start)), None)


def look_at(text: str) -> None:
    """Whether our program would take these words, without anything being done."""
    words = shlex.split(COMMENT.sub("", text))
    if words[0] != "forge-actors":
        return
    words = words[1:]
    if "--" in words:
        words = words[: words.index("--")]
    assert words[0] in VERBS, text
    make_parser(words[0], _load(words[0])).parse_args(words[1:])
