"""The script that completes in zsh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.grammar import own_options, value_options

if TYPE_CHECKING:
    from forge_actors.cli.grammar import Grammar, Verb

_SCRIPT = r"""#compdef forge-actors
# Completes forge-actors in zsh, behind compinit: eval "$(forge-actors completions zsh)"
_forge_actors_words() {
    # From the service, if one answers.
    local -a found
    found=(${(f)"$("${words[1]}" completions --words "$1" --starting "$PREFIX" \
        "${home[@]}" 2>/dev/null)"})
    compadd -a found
}
_forge_actors() {
    local verb= action= word
    local -a home
    local -i i
    local prev=${words[CURRENT-1]}
    for ((i = 2; i < CURRENT; i++)); do
        word=${words[i]}
        case $word in
            --) _default; return ;;
            --home) home=(--home "${words[i+1]}"); ((i++)) ;;
            -*) ;;
            *) if [[ -z $verb ]]; then verb=$word
               elif [[ -z $action ]]; then action=$word; fi ;;
        esac
    done
    case "$verb $prev" in
@VALUES@
    esac
    case "$verb $action" in
@VERBS@
        ' ') compadd -- @NAMES@ --help --home --version ;;
    esac
}
compdef _forge_actors forge-actors
"""


def script(verbs: Grammar) -> str:
    options = value_options(verbs)
    unknown = sorted(name for name, one in options.items() if not one.values)
    values = [
        *(
            f"        '{verb} {name}') {_complete(option.values)}; return ;;"
            for (verb, name), option in own_options(verbs).items()
        ),
        *(
            f"        *' {name}') {_complete(option.values)}; return ;;"
            for name, option in sorted(options.items())
            if option.values
        ),
    ]
    anywhere = "|".join(f"*' {name}'" for name in unknown)
    values.append(f"        {anywhere}) return ;;")
    cases = [line for verb in verbs for line in _cases(verb)]
    return (
        _SCRIPT.replace("@VALUES@", "\n".join(values))
        .replace("@VERBS@", "\n".join(cases))
        .replace("@NAMES@", " ".join(verb.name for verb in verbs))
    )


def _cases(verb: Verb) -> list[str]:
    lines = [
        _case(f"'{verb.name} {action.name}'", action, action.words)
        for action in verb.actions
    ]
    actions = tuple(action.name for action in verb.actions)
    lines.append(_case(f"'{verb.name} '*", verb, actions or verb.words))
    return lines


def _case(pattern: str, verb: Verb, words: tuple[str, ...] | str) -> str:
    options = " ".join(name for option in verb.options for name in option.names)
    return (
        f"        {pattern}) if [[ $PREFIX == -* ]]; then compadd -- {options}"
        f"; else {_complete(words)}; fi ;;"
    )


def _complete(values: tuple[str, ...] | str) -> str:
    if values == "folders":
        return "_files -/"
    if values == "files":
        return "_files"
    if isinstance(values, str):
        return f"_forge_actors_words {values}"
    return f"compadd -- {' '.join(values)}" if values else ":"
