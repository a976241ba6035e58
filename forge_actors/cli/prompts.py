"""Where the prompt of an agent comes from: the command line, a file or the input."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse


def add_prompt(parser: argparse._ActionsContainer) -> None:
    parser.add_argument("--prompt", metavar="TEXT", help="what the agent is to do")
    parser.add_argument(
        "--prompt-file", metavar="FILE", help="the same from a file; - reads the input"
    )


def prompt_of(args: argparse.Namespace, *, from_input: bool) -> str | None:
    """What the agent is to do, from wherever it comes. Only text can be asked."""
    path = "-" if from_input else args.prompt_file
    if path is None:
        prompt: str | None = args.prompt
        return prompt
    try:
        return read_bytes(path, "prompt").decode()
    except UnicodeDecodeError:
        raise InvalidInput("prompt", f"{path} is no UTF-8 text") from None


def read_bytes(path: str, field: str) -> bytes:
    if path == "-":
        return sys.stdin.buffer.read()
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise InvalidInput(field, f"{path}: {error.strerror}") from None
