"""The script that completes in bash."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.completion_cases import fill

if TYPE_CHECKING:
    from forge_actors.cli.grammar import Grammar

_SCRIPT = r"""# Completes forge-actors in bash: eval "$(forge-actors completions bash)"
_forge_actors_words() {
    # From the service, if one answers.
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" completions --words "$1" \
        --starting "$cur" "${home[@]}" 2>/dev/null)" -- "$cur"))
}
_forge_actors_fixed() {
    COMPREPLY=($(compgen -W "$1" -- "$cur"))
}
_forge_actors_paths() {
    local IFS=$'\n'
    COMPREPLY=($(compgen "$1" -- "$cur"))
    compopt -o filenames 2>/dev/null
}
_forge_actors() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
    local verb= action= word i home=()
    COMPREPLY=()
    if [[ $cur == '=' ]]; then
        cur=
    elif [[ $prev == '=' ]]; then
        prev=${COMP_WORDS[COMP_CWORD - 2]}
    fi
    for ((i = 1; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        case $word in
            --) compopt -o default 2>/dev/null; return ;;
            --home) home=(--home "${COMP_WORDS[i + 1]}"); ((i++)) ;;
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
        ' ') _forge_actors_fixed '@NAMES@ --help --home --version' ;;
    esac
}
complete -F _forge_actors forge-actors
"""


def script(verbs: Grammar) -> str:
    return fill(
        _SCRIPT,
        verbs,
        current="cur",
        options="_forge_actors_fixed '{}'",
        complete=_complete,
    )


def _complete(values: tuple[str, ...] | str) -> str:
    if values == "folders":
        return "_forge_actors_paths -d"
    if values == "files":
        return "_forge_actors_paths -f"
    if isinstance(values, str):
        return f"_forge_actors_words {values}"
    return f"_forge_actors_fixed '{' '.join(values)}'" if values else ":"
