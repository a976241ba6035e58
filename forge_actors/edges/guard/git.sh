name=git
go_on

# How many arguments come before the command, and which one that is.
find_command() {
    before=0 command= value=
    for word; do
        if [ -n "$value" ]; then
            value=
        else
            case $word in
                -C | -c | --git-dir | --work-tree | --namespace | --super-prefix | \
                    --config-env | --attr-source) value=1 ;;
                -*) ;;
                *)
                    command=$word
                    return
                    ;;
            esac
        fi
        before=$((before + 1))
    done
}

# What the repository and the user mean by a word that is no command of git.
alias_of() {
    left=$# number=0
    while [ "$number" -lt "$left" ]; do
        word=$1
        shift
        [ "$number" -ge "$top" ] || set -- "$@" "$word"
        number=$((number + 1))
    done
    "$next" "$@" config --get "alias.$command" 2>/dev/null
}

# Refuse what changes a remote repository. 1: it is an alias, or nothing of git's.
judge() {
    find_command "$@"
    shift "$before"
    case $command in
        push | send-pack | http-push) refuse push "git $command" ;;
        send-email | imap-send) refuse remote "git $command" ;;
        lfs | subtree | annex | svn | p4)
            for word; do
                case $word in
                    push | sync | dcommit | submit | branch | tag | copy | move)
                        refuse push "git $command $word"
                        ;;
                esac
            done
            ;;
        '' | add | am | apply | archive | bisect | blame | branch | bundle | cat-file | \
            check-attr | check-ignore | checkout | cherry | cherry-pick | clean | clone | \
            commit | commit-tree | config | count-objects | describe | diff | diff-files | \
            diff-index | diff-tree | fast-export | fetch | for-each-ref | format-patch | \
            fsck | gc | grep | hash-object | help | init | log | ls-files | ls-remote | \
            ls-tree | merge | merge-base | mv | name-rev | notes | pull | range-diff | \
            read-tree | rebase | reflog | remote | repack | reset | restore | rev-list | \
            rev-parse | revert | rm | shortlog | show | show-ref | sparse-checkout | \
            stash | status | submodule | switch | symbolic-ref | tag | update-index | \
            update-ref | var | version | whatchanged | worktree | write-tree) ;;
        *) return 1 ;;
    esac
}

find_command "$@"
top=$before
if ! judge "$@"; then
    # An alias of an alias of ...; git itself ends one that is a circle.
    for depth in 1 2 3 4 5 6 7 8; do
        meant=$(alias_of "$@")
        case $meant in
            '') break ;;
            '!'*)
                case $meant in
                    *push* | *send-pack*) refuse push "git $command (an alias)" ;;
                esac
                break
                ;;
        esac
        # shellcheck disable=SC2086 # its words are arguments
        judge $meant && break
    done
fi
exec "$next" "$@"
