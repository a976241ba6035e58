#!/bin/sh
# Made by forge-actors for jobs that no person began. It lets everything through but what
# nobody has allowed; the name of its folder says what is. design/effects.md has the rest.
set -f
here=${0%/*}
may=+${here##*/}+

# The next program of this name in PATH takes our place, with the same arguments.
go_on() {
    IFS=:
    for folder in $PATH; do
        next=$folder/$name
        if [ -n "$folder" ] && [ -f "$next" ] && [ -x "$next" ] && ! [ "$next" -ef "$0" ]
        then
            unset IFS
            return
        fi
    done
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
