"""The options that describe a job: of `submit`, and of whatever submits later."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

from forge_actors.cli.prompts import prompt_of
from forge_actors.cli.verb import repository
from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    import argparse

#: Options whose text goes to the service as it is, under the same name.
_PLAIN = (
    "kind",
    "priority",
    "timeout",
    "queue_timeout",
    "admission_timeout",
    "idle_timeout",
    "provider",
    "replay",
    "max_attempts",
    "stop_signal",
    "grace",
    "nice",
    "memory",
    "pids",
    "after_job",
    "agent",
    "budget_cost",
    "budget_tokens",
    "verify",
    "verify_timeout",
    "verify_rounds",
    "isolate",
    "branch",
    "base",
    "in_worktree",
)
#: Options that take words with commas between them.
_LISTS = ("effects", "authorised")


def add_job_options(parser: argparse.ArgumentParser) -> None:
    """All but the prompt, and what only one job can have."""
    add = parser.add_argument
    add("--repo", help="name or path of the repository (default: the current folder)")
    add("--kind", help="what the job is (default: repository-command)")
    add("--priority", help="P0, most urgent, to P4 (default: P2)")
    add(
        "--claim",
        action="append",
        default=[],
        metavar="MODE:FAMILY[:REST]",
        help="what the job touches, for example read:path:src; repeatable",
    )
    add("--timeout", metavar="TIME", help="how long it may run, for example 90s or 2h")
    add("--queue-timeout", metavar="TIME", help="how long it may wait for its start")
    add("--admission-timeout", metavar="TIME", help="how long until it is looked at")
    add("--idle-timeout", metavar="TIME", help="how long it may print nothing")
    add("--label", action="append", default=[], help="repeatable")
    add("--provider", metavar="NAME", help="take a token of this agent provider")
    add("--read-only", action="store_true", help="the job changes nothing")
    add("--replay", metavar="never|safe|always", help="may it be started again?")
    add("--max-attempts", type=int, metavar="N", help="how often it may be started")
    add("--cwd", metavar="DIR", help="folder to run in")
    add(
        "--env",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help="a variable for the job; without a value, the one set here; repeatable",
    )
    add(
        "--secret",
        action="append",
        default=[],
        metavar="NAME",
        help="a secret the job gets as this variable, masked in its log; repeatable",
    )
    add("--stdin-file", metavar="FILE", help="the job reads this file as its input")
    add("--stop-signal", metavar="NAME", help="how to ask it to stop (SIGTERM)")
    add("--grace", metavar="TIME", help="time between that and the hard end (10s)")
    add(
        "--keep-leftovers",
        action="store_true",
        help="processes it leaves behind may live on",
    )
    add("--pty", action="store_true", help="give it a terminal (80x24), nobody types")
    add("--nice", type=int, metavar="N", help="step back behind others: 0 to 19")
    add("--memory", metavar="SIZE", help="memory it may use, like 2G: see doctor")
    add("--pids", type=int, metavar="N", help="processes and threads it may have")
    add(
        "--after-job",
        metavar="CMD",
        help="a shell command for its end, however it ends, at most 60 s",
    )
    add(
        "--artifact",
        action="append",
        default=[],
        metavar="GLOB",
        help="files of its folder to keep when it has ended; repeatable",
    )
    add(
        "--output",
        action="append",
        default=[],
        metavar="NAME",
        help="a value that it hands on, in the file FORGE_OUTPUT names; repeatable",
    )
    add(
        "--isolate",
        action="store_true",
        default=None,
        help="run it in a worktree of its own",
    )
    add(
        "--no-isolate",
        action="store_false",
        dest="isolate",
        help="never run it in one, even if it has to wait",
    )
    add("--branch", metavar="PATTERN", help="its branch there (forge/{job})")
    add("--base", metavar="REF", help="what that begins at (HEAD of the checkout)")
    add("--in-worktree", metavar="JOB", help="run it in the worktree of that job")
    add(
        "--agent",
        metavar="NAME[,NAME]",
        help="run this agent: claude, codex, copilot, ...; of several the first able",
    )
    add(
        "--budget-cost",
        type=float,
        metavar="USD",
        help="what that may cost, all attempts together",
    )
    add("--budget-tokens", type=int, metavar="N", help="the tokens that it may use")
    add(
        "--effects",
        metavar="NAME[,NAME]",
        help="what it does to the outside: push, pull_request, merge, release, ...",
    )
    add(
        "--authorise",
        dest="authorised",
        metavar="NAME[,NAME]",
        help="effects that you allow a job which no person asks for",
    )
    add(
        "--verify",
        metavar="CMD",
        help="a shell command that its work must pass; it mends what that finds",
    )
    add("--verify-timeout", metavar="TIME", help="how long that may run (1h)")
    add(
        "--verify-rounds",
        type=int,
        metavar="N",
        help="how often it may mend what that finds (3)",
    )


def job_of(args: argparse.Namespace, *, from_input: bool = False) -> dict[str, object]:
    """The job that these options describe, as a request has it.

    Raises:
        InvalidInput: one of them makes no sense.
    """
    request: dict[str, object] = {
        "repo": os.getcwd() if args.repo is None else repository(args.repo),
        "argv": [_encode(part) for part in args.command or ()],
        "claims": args.claim,
        "labels": args.label,
        "read_only": args.read_only,
        "keep_leftovers": args.keep_leftovers,
        "pty": args.pty,
        "env": dict(_variable(text) for text in args.env),
    }
    prompt = prompt_of(args, from_input=from_input)
    if prompt is not None:
        request["prompt"] = prompt
    if args.secret:
        request["secrets"] = args.secret
    if args.artifact:
        request["artifacts"] = args.artifact
    if args.output:
        request["outputs"] = args.output
    for name in _PLAIN:
        value = getattr(args, name)
        if value is not None:
            request[name] = value
    for name in _LISTS:
        if (words := getattr(args, name)) is not None:
            request[name] = words.split(",")
    # Without --repo the command runs where it was typed.
    folder = os.getcwd() if args.repo is None and args.cwd is None else args.cwd
    if folder is not None:
        request["cwd"] = os.path.abspath(folder)
    if args.stdin_file is not None:
        request["stdin"] = os.path.abspath(args.stdin_file)
    check_texts(request)
    return request


def check_texts(request: dict[str, object]) -> None:
    """Only arguments may be bytes that are no text; the rest travels as JSON.

    Raises:
        InvalidInput: something else is.
    """
    for name, value in request.items():
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InvalidInput(name, "is no UTF-8 text") from None


def _encode(argument: str) -> str | dict[str, str]:
    """An argument as JSON can carry it: bytes that are no text as base64."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        import base64

        raw = argument.encode("utf-8", "surrogateescape")
        return {"b64": base64.b64encode(raw).decode("ascii")}
    return argument


def _variable(text: str) -> tuple[str, str]:
    name, given, value = text.partition("=")
    if not name:
        raise InvalidInput("env", f"{text!r} is neither NAME=VALUE nor NAME")
    if not given:
        if name not in os.environ:
            raise InvalidInput("env", f"{name} is not set here; write {name}=VALUE")
        value = os.environ[name]
    return name, value
