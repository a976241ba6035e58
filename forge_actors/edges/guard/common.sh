#!/bin/sh
# Made by forge-actors for jobs that no person began. It lets everything through but what
# nobody has allowed; the name of its folder says what is. design/effects.md has the rest.
set -f
here=${0%/*}
may=+${here##*/}+

# The next program of this name in PATH takes our place, with the same arguments: one
# behind us, as one before us may be a wrapper too, whose next one we would be.
go_on() {
    next= passed=
    IFS=:
    for folder in $PATH; do
        found=$folder/$name
        [ -n "$folder" ] && [ -f "$found" ] && [ -x "$found" ] || continue
        if [ "$found" -ef "$0" ]; then
            next= passed=1
        elif [ -z "$next" ]; then
            next=$found
        fi
        [ -z "$passed" ] || [ -z "$next" ] || break
    done
    unset IFS
    [ -z "$next" ] || return 0
    echo "$name: not found" >&2
    exit 127
}

# refuse EFFECT COMMAND, unless that is allowed
refuse() {
    case $may in *"+$1+"*) return ;; esac
    case $FORGE_JOB_ID.$FORGE_ATTEMPT in
        .* | *. | *[!0-9a-z.]*) ;;
        *)
            log=${here%/*/*}/logs/$FORGE_JOB_ID.$FORGE_ATTEMPT.effects
            if ! [ -e "$log" ] || [ "$(wc -c <"$log")" -lt 16384 ]; then
                (umask 077 && printf '%s\t%s\n' "$1" "$2" >>"$log") 2>/dev/null
            fi
            ;;
    esac
    echo "forge-actors: '$2' is held back: no person began job $FORGE_JOB_ID, and nobody" \
        "has allowed it to $1; a person can: forge-actors retry $FORGE_JOB_ID" \
        "--authorise $1" >&2
    exit 77
}
