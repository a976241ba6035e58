"""The `case` branches of a completion script, which bash and zsh read alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.cli.grammar import own_options, value_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.cli.grammar import Grammar, Verb

    #: The command that completes with fixed words, or with those of a named source.
    Complete = Callable[[tuple[str, ...] | str], str]


def fill(
    template: str, verbs: Grammar, *, current: str, options: str, complete: Complete
) -> str:
    """A script with its branches in the places of @VALUES@, @VERBS@ and @NAMES@.

    `current` is the variable with the word so far, `options` the command that completes
    with the options in place of its `{}`.
    """
    own, shared = own_options(verbs), value_options(verbs)
    unknown = sorted(name for name, one in shared.items() if not one.values)
    values = [
        *(
            f"        '{verb} {name}') {complete(option.values)}; return ;;"
            for (verb, name), option in own.items()
        ),
        *(
            f"        *' {name}') {complete(option.values)}; return ;;"
            for name, option in sorted(shared.items())
            if option.values
        ),
    ]
    anywhere = "|".join(f"*' {name}'" for name in unknown)
    values.append(f"        {anywhere}) return ;;")

    def case(pattern: str, verb: Verb, words: tuple[str, ...] | str) -> str:
        names = " ".join(name for option in verb.options for name in option.names)
        return (
            f"        {pattern}) if [[ ${current} == -* ]]; then"
            f" {options.format(names)}; else {complete(words)}; fi ;;"
        )

    cases: list[str] = []
    for verb in verbs:
        cases += (
            case(f"'{verb.name} {action.name}'", action, action.words)
            for action in verb.actions
        )
        actions = tuple(action.name for action in verb.actions)
        cases.append(case(f"'{verb.name} '*", verb, actions or verb.words))
    return (
        template.replace("@VALUES@", "\n".join(values))
        .replace("@VERBS@", "\n".join(cases))
        .replace("@NAMES@", " ".join(verb.name for verb in verbs))
    )
