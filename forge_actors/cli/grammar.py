"""What can be typed: the verbs, their options and what the values of these are.

Read from the parsers themselves, so that a new option is completed without more work.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass, field

from forge_actors.cli.main import VERBS
from forge_actors.cli.verb import make_parser
from forge_actors.domain.jobs import KINDS, REPLAYS, STATES
from forge_actors.domain.priority import PRIORITIES

#: Verbs whose jobs have not ended.
ACTIVE = frozenset({"cancel", "edit", "hold", "pause", "resume", "unhold", "wait"})
#: What the value of an option is where its parser does not say: words, or what to look
#: for: `repos`, `folders`, `files`.
_VALUES: dict[str, tuple[str, ...] | str] = {
    "--state": STATES,
    "--kind": KINDS,
    "--replay": REPLAYS,
    "--priority": PRIORITIES,
    "--repo": "repos",
    "--after": "jobs",
    "--before": "jobs",
    "--home": "folders",
    "--cwd": "folders",
    "--batch": "files",
    "--stdin-file": "files",
}


@dataclass(frozen=True)
class Option:
    """One option: its spellings, its help, and if it has a value, which ones."""

    names: tuple[str, ...]
    help: str
    takes_value: bool
    values: tuple[str, ...] | str = ()


@dataclass(frozen=True)
class Verb:
    """One verb, or an action of one: what may follow it."""

    name: str
    help: str
    options: tuple[Option, ...]
    #: What its words are: `jobs`, `active`, `repos`, `folders`, `files` or these words.
    words: tuple[str, ...] | str = ()
    actions: tuple[Verb, ...] = field(default=())


Grammar = tuple[Verb, ...]


def grammar() -> Grammar:
    """Every verb. Loads them all, which only the making of a script is worth."""
    verbs = []
    for name, text in VERBS.items():
        module = importlib.import_module(f"forge_actors.cli.{name}")
        verbs.append(_verb(name, text, make_parser(name, module)))
    verbs.append(Verb("help", "the help of a verb", (), tuple(VERBS)))
    return tuple(verbs)


def value_options(verbs: Grammar) -> dict[str, Option]:
    """Every spelling of every option that takes a value."""
    found: dict[str, Option] = {}
    for verb in verbs:
        for part in (verb, *verb.actions):
            for option in part.options:
                if option.takes_value:
                    found |= dict.fromkeys(option.names, option)
    return found


def _verb(name: str, text: str, parser: argparse.ArgumentParser) -> Verb:
    options: list[Option] = []
    actions: tuple[Verb, ...] = ()
    words: tuple[str, ...] | str = ()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            actions = tuple(
                _verb(word, helps.get(word) or "", inner)
                for word, inner in action.choices.items()
            )
        elif action.option_strings:
            options.append(_option(action))
        elif not words:
            words = _words(name, action)
    return Verb(name, text, tuple(options), words, actions)


def _option(action: argparse.Action) -> Option:
    names = tuple(action.option_strings)
    values: tuple[str, ...] | str = _VALUES.get(names[-1], ())
    if action.choices:
        values = tuple(map(str, action.choices))
    text = " ".join((action.help or "").split())
    return Option(names, text, action.nargs != 0, values)


def _words(verb: str, action: argparse.Action) -> tuple[str, ...] | str:
    if action.choices:
        return tuple(map(str, action.choices))
    if action.metavar == "JOB":
        return "active" if verb in ACTIVE else "jobs"
    if action.metavar == "NAME":
        return "repos"
    return "files" if action.metavar in ("FILE", "PATH") else ()
