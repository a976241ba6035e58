"""The script that completes in zsh."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.completion_cases import fill

if TYPE_CHECKING:
    from forge_actors.cli.grammar import Grammar

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
    return fill(
        _SCRIPT,
        verbs,
        current="PREFIX",
        options="compadd -- {}",
        complete=_complete,
    )


def _complete(values: tuple[str, ...] | str) -> str:
    if values == "folders":
        return "_files -/"
    if values == "files":
        return "_files"
    if isinstance(values, str):
        return f"_forge_actors_words {values}"
    return f"compadd -- {' '.join(values)}" if values else ":"
