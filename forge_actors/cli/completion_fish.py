"""The script that completes in fish."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.cli.grammar import Grammar, Option, Verb

_HEAD = r"""# Completes forge-actors in fish
function __forge_actors_words
    # From the service, if one answers.
    set -l words (commandline -opc)
    set -l home
    if set -l place (contains -i -- --home $words)
        set home --home $words[(math $place + 1)]
    end
    set -l start (commandline -ct)
    $words[1] completions --words $argv[1] --starting "$start" $home 2>/dev/null
end
complete -c forge-actors -f
"""


def script(verbs: Grammar) -> str:
    names = " ".join(verb.name for verb in verbs)
    lines = [_HEAD.rstrip()]
    for verb in verbs:
        first = f"not __fish_seen_subcommand_from {names}"
        lines.append(_line(first, f"-a {verb.name} -d {_quoted(verb.help)}"))
        lines += _lines(verb, f"__fish_seen_subcommand_from {verb.name}")
    return "\n".join(lines) + "\n"


def _lines(verb: Verb, condition: str) -> list[str]:
    found = [_line(condition, _option(option)) for option in verb.options]
    words = _arguments(verb.words)
    if words:
        found.append(_line(condition, words))
    names = " ".join(action.name for action in verb.actions)
    for action in verb.actions:
        none_yet = f"{condition}; and not __fish_seen_subcommand_from {names}"
        found.append(_line(none_yet, f"-a {action.name} -d {_quoted(action.help)}"))
        chosen = f"{condition}; and __fish_seen_subcommand_from {action.name}"
        found += _lines(action, chosen)
    return found


def _line(condition: str, rest: str) -> str:
    return f"complete -c forge-actors -n {_quoted(condition)} {rest}"


def _option(option: Option) -> str:
    parts = [
        f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
        for name in option.names
    ]
    if option.takes_value:
        parts.append("-r")
        parts.append(_arguments(option.values))
    parts.append(f"-d {_quoted(option.help)}")
    return " ".join(filter(None, parts))


def _arguments(values: tuple[str, ...] | str) -> str:
    if values == "folders":
        return "-a '(__fish_complete_directories)'"
    if values == "files":
        return "-F"
    if isinstance(values, str):
        return f"-a '(__forge_actors_words {values})'"
    return f"-a {_quoted(' '.join(values))}" if values else ""


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
