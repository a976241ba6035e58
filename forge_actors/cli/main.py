"""The `forge-actors` program: finds the verb, runs it, turns every failure into a line.

Only the module of the one verb that was asked for is imported.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

#: Verb, and what it does in a few words. `module_of` says where it is.
VERBS = {
    "serve": "run the service of a home",
    "repo": "add, list, show or remove repositories",
    "worktree": "list, keep, remove or restore worktrees of jobs",
    "submit": "queue one job, or a batch of them",
    "jobs": "list jobs",
    "show": "everything about one job",
    "why": "why a job is where it is",
    "logs": "the output of a job",
    "diff": "what a job changed in its worktree",
    "apply": "bring what a job did into the checkout",
    "artifact": "list or fetch the files that jobs left",
    "wait": "wait until jobs have ended",
    "cancel": "end jobs",
    "retry": "run jobs again that have ended",
    "continue": "ask the agent of a job for more, in its session",
    "hold": "keep waiting jobs from starting",
    "unhold": "let held jobs go on",
    "pause": "start nothing more somewhere, or suspend jobs",
    "resume": "end a pause",
    "edit": "change a job that waits",
    "policy": "which work is let in and started",
    "fence": "whether an attempt still holds its job",
    "inbox": "everything that needs a person",
    "answer": "answer what the agent of a job asks",
    "approve": "let a job go on that asks something",
    "deny": "end a job that asks something",
    "quarantine": "claims that are kept for what ended jobs left",
    "usage": "what agents used, in tokens and money",
    "template": "jobs with places for values, by name",
    "schedule": "jobs that are submitted by themselves",
    "controller": "agent sessions that are woken to go on",
    "workflow": "jobs that depend on each other, from a file",
    "epic": "the issues of a GitHub issue, worked through one by one",
    "webhook": "who is told of events by HTTP, and how far they are",
    "events": "what happened, and what happens",
    "timeline": "what ran when, on which tokens",
    "watch": "the jobs of a service, live, in the whole terminal",
    "status": "the service, its limits and what it does",
    "open": "the pages of the service in a browser",
    "service": "have the system keep the service running",
    "drain": "start nothing more and wait for what runs",
    "stop": "stop the service",
    "release": "which build serves a home, and changing to another",
    "run": "run a file of jobs, or one command, to the end",
    "settings": "check, show or reload the settings",
    "secret": "set, list or remove secrets that jobs get",
    "backup": "copy the store of a home to a file",
    "restore": "give a home another store, a backup for one",
    "export": "write a home to a file, for another machine",
    "import": "make a new home of an export",
    "clean": "remove what retention lets go, or say what that is",
    "purge": "remove everything that is ours",
    "doctor": "check what this machine offers",
    "api": "what the service answers over HTTP",
    "mcp": "what agents start to use the service as tools",
    "man": "the manual page",
    "completions": "a script that completes all this in a shell",
}
#: Started by ourselves alone: in no list, no completion and no manual.
HIDDEN = ("epic-worker",)
#: How the list of verbs is divided; a verb that is in none of them comes last.
GROUPS = {
    "the service": (
        "serve",
        "status",
        "open",
        "stop",
        "drain",
        "service",
        "release",
        "settings",
        "secret",
        "webhook",
        "doctor",
        *("api", "mcp"),
    ),
    "repositories": ("repo", "worktree"),
    "new jobs": (
        *("submit", "run", "retry", "continue", "template", "schedule"),
        *("workflow", "epic", "controller"),
    ),
    "looking at jobs": (
        *("watch", "inbox", "jobs", "show", "why", "logs", "diff", "artifact", "wait"),
        *("usage", "events", "timeline", "fence"),
    ),
    "steering jobs": (
        "apply",
        "cancel",
        "edit",
        "hold",
        "unhold",
        "pause",
        "resume",
        "policy",
        *("answer", "approve", "deny"),
        "quarantine",
    ),
    "a home as a whole": ("backup", "restore", "export", "import", "clean", "purge"),
    "the shell": ("completions", "man"),
}
USAGE = """\
usage: forge-actors VERB [options]

Runs the long jobs of many git repositories on one machine, within its limits.

{verbs}

forge-actors help VERB shows the options of one verb, with examples.

examples:
  forge-actors serve --detach
  forge-actors submit --kind check -- make test
  forge-actors jobs
"""
INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program with these arguments; its exit status."""
    words = list(sys.argv[1:] if argv is None else argv)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _open_streams()
    for stream in (sys.stdout, sys.stderr):
        # A file name need not be text; showing it must not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read us has seen enough; the last flush at exit must not complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001 - a user never sees a traceback
        return _report(error, as_json="--json" in _options(words))
    return status


def _open_streams() -> None:
    """Have streams in place of those that were closed when we began: what is opened
    next would get their numbers, and what is printed there."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)
    sys.stdin = sys.stdin or os.fdopen(0, closefd=False)
    sys.stdout = sys.stdout or os.fdopen(1, "w", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", closefd=False)


def _options(words: list[str]) -> list[str]:
    """The words before `--`."""
    return words[: words.index("--")] if "--" in words else words


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        if words[:1] == ["help"] and words[1:] not in ([], ["--help"], ["-h"]):
            return _dispatch([*words[1:], "--help"])
        print(_usage(), end="")
        return 0
    if words[0] in ("-V", "--version"):
        from forge_actors import __version__

        print(f"forge-actors {__version__}")
        return 0
    if words[0] == "--home" and len(words) > 2:
        words = [words[2], *words[:2], *words[3:]]
    verb, *rest = words
    if verb == "--home":
        raise _incomplete()
    if verb not in VERBS and verb not in HIDDEN:
        raise _unknown(verb)
    from forge_actors.cli.verb import run_verb

    return run_verb(verb, _load(verb), rest)


def _usage() -> str:
    grouped = {verb for verbs in GROUPS.values() for verb in verbs}
    rest = tuple(verb for verb in VERBS if verb not in grouped)
    size = max(map(len, VERBS))
    lines = []
    for title, verbs in {**GROUPS, "others": rest}.items():
        known = [verb for verb in verbs if verb in VERBS]
        if known:
            lines += [f"{title}:"]
            lines += [f"  {verb:<{size}}  {VERBS[verb]}" for verb in known]
    return USAGE.format(verbs="\n".join(lines))


def module_of(verb: str) -> str:
    """The module of a verb: its name, with a line behind it if Python has that word."""
    name = verb.replace("-", "_")
    return f"forge_actors.cli.{name}{'_' if verb in ('import', 'continue') else ''}"


def _load(verb: str) -> ModuleType:
    import importlib

    return importlib.import_module(module_of(verb))


def _incomplete() -> Exception:
    from forge_actors.cli.verb import UsageError

    return UsageError("--home takes a folder, and a verb follows: --home DIR VERB")


def _unknown(verb: str) -> Exception:
    from forge_actors.cli.verb import UsageError, near_miss

    hint = near_miss(verb, VERBS) or "; forge-actors --help lists the verbs"
    return UsageError(f"there is no verb {verb!r}{hint}")


def _report(error: Exception, *, as_json: bool) -> int:
    """Tell the user in one line; the exit status the error stands for."""
    if sys.flags.dev_mode:
        raise error
    from forge_actors.cli.text import clean
    from forge_actors.domain.errors import ForgeError

    if isinstance(error, ForgeError):
        code, message, status = error.code, str(error), error.exit_code
    elif isinstance(error, OSError):
        code, message, status = "OS_ERROR", str(error), 1
    else:
        # `python -X dev -m forge_actors …` shows where it came from.
        message = f"internal error: {type(error).__name__}: {error}"
        code, status = "INTERNAL", 1
    if as_json:
        import json

        line = json.dumps({"error": {"code": code, "message": message}})
    else:
        line = f"forge-actors: {clean(message)}"
    print(line, file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
