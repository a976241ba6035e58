"""`man`: the manual page, from what the verbs say of themselves."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from forge_actors.cli.verb import UsageError, make_parser, near_miss, print_json

if TYPE_CHECKING:
    from collections.abc import Iterator

HELP = (
    "Print the manual page of the program, or of one verb: what --help says, for man.\n"
    "Nothing is installed; the examples show where it can go."
)
EXAMPLES = """\
  forge-actors man | man -l -
  forge-actors man > ~/.local/share/man/man1/forge-actors.1
  forge-actors man submit | man -l -
"""
INTRODUCTION = (
    "Forge Actors runs the long jobs of many git repositories on one machine: agents,"
    " test suites, builds. Each repository has a queue and claims on what its jobs"
    " touch; jobs start within global limits and those of providers, outlive the"
    " service, and end in one right state whatever is killed."
)
EXIT_STATUS = (
    ("0", "done"),
    ("1", "a job failed, or something is broken"),
    ("2", "the call makes no sense"),
    ("3", "refused, or in conflict with what is there"),
    ("4", "no service runs"),
    ("5", "a wait took longer than it was to"),
    ("75", "another release was made the active one"),
    ("130", "interrupted"),
)
FILES = (
    ("settings.toml", "in the home: every setting; settings show lists them"),
    ("templates.toml", "in the home: templates of your own"),
    (".forge/*.toml", "in a repository: what it brings along; see repo trust"),
    ("$FORGE_CONTROLLER_HOME", "the home, where --home does not say another one"),
    ("~/.local/state/forge-actors", "the home where nothing says another one"),
)


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("verb", nargs="?", metavar="VERB", help="only this one")


def run(args: argparse.Namespace) -> int:
    from forge_actors.cli.main import VERBS

    if args.verb is not None and args.verb not in VERBS:
        raise UsageError(f"there is no verb {args.verb!r}{near_miss(args.verb, VERBS)}")
    text = page(args.verb)
    if args.json:
        print_json({"page": text})
    else:
        print(text, end="")
    return 0


def page(verb: str | None = None) -> str:
    """The page, as man(7) reads it."""
    return "\n".join(_verb_page(verb) if verb else _whole()) + "\n"


def _whole() -> Iterator[str]:
    from forge_actors.cli.main import GROUPS, VERBS

    yield from _head("forge-actors", "run the long jobs of many git repositories")
    yield ".SH SYNOPSIS"
    yield ".B forge-actors"
    yield ".I VERB"
    yield "[options]"
    yield ".SH DESCRIPTION"
    yield _plain(INTRODUCTION)
    yield ".SH VERBS"
    named = {verb for verbs in GROUPS.values() for verb in verbs}
    rest = tuple(verb for verb in VERBS if verb not in named)
    for title, verbs in {**GROUPS, "others": rest}.items():
        known = [verb for verb in verbs if verb in VERBS]
        if not known:
            continue
        yield f".SS {_plain(title)}"
        for verb in known:
            yield from _entry(verb, VERBS[verb])
    for verb in VERBS:
        yield f".SH {_plain(verb.upper())}"
        yield from _body(verb)
    yield ".SH EXIT STATUS"
    for status, meaning in EXIT_STATUS:
        yield from _entry(status, meaning)
    yield ".SH FILES"
    for name, meaning in FILES:
        yield from _entry(name, meaning)


def _verb_page(verb: str) -> Iterator[str]:
    from forge_actors.cli.main import VERBS

    yield from _head(f"forge-actors-{verb}", VERBS[verb])
    yield ".SH DESCRIPTION"
    yield from _body(verb)


def _head(name: str, what: str) -> Iterator[str]:
    from forge_actors import __version__

    yield f'.TH "{_plain(name.upper())}" 1 "" "Forge Actors {__version__}"'
    yield ".SH NAME"
    yield f"{_plain(name)} \\- {_plain(what)}"


def _body(verb: str) -> Iterator[str]:
    from forge_actors.cli.main import _load

    module = _load(verb)
    parser = make_parser(verb, module)
    yield _plain(" ".join(module.HELP.split()))
    yield from _options(parser)
    yield ".PP"
    yield "Examples:"
    yield ".nf"
    for line in module.EXAMPLES.rstrip().splitlines():
        yield _plain(line)
    yield ".fi"


def _options(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or "--help" in action.option_strings:
            continue
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            for word, inner in action.choices.items():
                yield from _entry(word, helps.get(word) or "")
                yield ".RS"
                yield from _options(inner)
                yield ".RE"
            continue
        value = "" if action.nargs == 0 else _value(action)
        names = ", ".join(action.option_strings)
        title = f"{names} {value}".strip() if names else value
        yield from _entry(title, " ".join((action.help or "").split()))


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    if action.choices:
        return "|".join(map(str, action.choices))
    return action.dest.upper()


def _entry(title: str, text: str) -> Iterator[str]:
    yield ".TP"
    yield f"\\fB{_plain(title)}\\fR"
    yield _plain(text.replace("%%", "%")) or "\\&"


def _plain(text: str) -> str:
    """Text that groff shows as it is (groff_char)."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{text}" if text[:1] in (".", "'") else text
