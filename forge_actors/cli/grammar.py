"""What can be typed: the verbs, their options and what the values of these are.

Read from the parsers themselves, so that a new option is completed without more work.
"""

from __future__ import annotations

import argparse
import importlib
from dataclasses import dataclass, field

from forge_actors.cli.main import VERBS, module_of
from forge_actors.cli.verb import make_parser
from forge_actors.domain import events
from forge_actors.domain.jobs import KINDS, REPLAYS, STATES
from forge_actors.domain.priority import PRIORITIES

#: Verbs whose jobs have not ended.
ACTIVE = frozenset({"cancel", "edit", "hold", "pause", "resume", "unhold", "wait"})
#: What the value of an option is where its parser does not say: words, or what to look
#: for: `repos`, `templates`, `folders`, `files`.
_VALUES: dict[str, tuple[str, ...] | str] = {
    "--state": STATES,
    "--kind": KINDS,
    "--replay": REPLAYS,
    "--priority": PRIORITIES,
    "--repo": "repos",
    "--template": "templates",
    "--after": "jobs",
    "--before": "jobs",
    "--home": "folders",
    "--cwd": "folders",
    "--batch": "files",
    "--stdin-file": "files",
}
#: The same for options that mean something else in one verb than in the others.
_OWN_VALUES: dict[tuple[str, str], tuple[str, ...]] = {
    ("events", "--kind"): events.KINDS,
}
#: Verbs whose NAME is no repository.
_OTHER_NAMES = frozenset({"secret"})


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
        module = importlib.import_module(module_of(name))
        verbs.append(_verb(name, text, make_parser(name, module)))
    verbs.append(Verb("help", "the help of a verb", (), tuple(VERBS)))
    return tuple(verbs)


def value_options(verbs: Grammar) -> dict[str, Option]:
    """Every spelling of every option that takes a value, as most verbs mean it."""
    found: dict[str, Option] = {}
    for verb in verbs:
        for part in (verb, *verb.actions):
            for option in part.options:
                if option.takes_value:
                    names = (n for n in option.names if not _is_own(verb, n))
                    found |= dict.fromkeys(names, option)
    return found


def own_options(verbs: Grammar) -> dict[tuple[str, str], Option]:
    """By verb and spelling, those that mean something else there."""
    return {
        (verb.name, name): option
        for verb in verbs
        for option in verb.options
        for name in option.names
        if _is_own(verb, name)
    }


def _is_own(verb: Verb, name: str) -> bool:
    return (verb.name, name) in _OWN_VALUES


def _verb(
    name: str, text: str, parser: argparse.ArgumentParser, *, of: str | None = None
) -> Verb:
    """A verb, or an action `of` one."""
    options: list[Option] = []
    actions: tuple[Verb, ...] = ()
    words: tuple[str, ...] | str = ()
    for action in parser._actions:
        if action.help == argparse.SUPPRESS:
            continue
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help for choice in action._choices_actions}
            actions = tuple(
                _verb(word, helps.get(word) or "", inner, of=name)
                for word, inner in action.choices.items()
            )
        elif action.option_strings:
            options.append(_option(of or name, action))
        elif not words:
            words = _words(of or name, action)
    return Verb(name, text, tuple(options), words, actions)


def _option(verb: str, action: argparse.Action) -> Option:
    names = tuple(action.option_strings)
    values: tuple[str, ...] | str = _VALUES.get(names[-1], ())
    values = _OWN_VALUES.get((verb, names[-1]), values)
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
        return () if verb in _OTHER_NAMES else "repos"
    if action.metavar == "TEMPLATE":
        return "templates"
    return "files" if action.metavar in ("FILE", "PATH") else ()
