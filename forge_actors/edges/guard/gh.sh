name=gh
go_on

# The first two words that are no option.
first= second= value=
for word; do
    if [ -n "$value" ]; then
        value=
        continue
    fi
    case $word in
        -R | --repo | --hostname) value=1 ;;
        -*) ;;
        *)
            if [ -z "$first" ]; then
                first=$word
            else
                second=$word
                break
            fi
            ;;
    esac
done

# Whether a call of the API only reads: by its method, its fields, its query.
reads() {
    method= sends= value=
    for word; do
        case $value in
            method) method=$word ;;
            field) case $word in *mutation* | query=@*) return 1 ;; esac ;;
        esac
        if [ -n "$value" ]; then
            value=
            continue
        fi
        case $word in
            -X | --method) value=method ;;
            --method=*) method=${word#*=} ;;
            -X*) method=${word#-X} method=${method#=} ;;
            -f | -F | --field | --raw-field) value=field sends=1 ;;
            --input | --input=*) return 1 ;;
            --field=* | --raw-field=*)
                sends=1
                case $word in *mutation* | *=query=@*) return 1 ;; esac
                ;;
            -H | -q | -t | -p | --header | --jq | --template | --preview | --hostname | \
                --cache) value=other ;;
            --*) ;;
            -*[XfF]*) return 1 ;;
        esac
    done
    case $method in
        [Gg][Ee][Tt] | [Hh][Ee][Aa][Dd]) return 0 ;;
        '') [ -z "$sends" ] || [ "$second" = graphql ] ;;
        *) return 1 ;;
    esac
}

# What is told of it: the second word may be the value of an option.
case $second in
    close | comment | create | delete | delete-asset | develop | disable | edit | enable | \
        lock | merge | pin | ready | reopen | revert | review | run | transfer | unlock | \
        unpin | update-branch | upload) told=$second ;;
    *) told='(another command)' ;;
esac

case $first.$second in
    .* | alias.* | auth.* | browse.* | completion.* | config.* | help.* | search.* | \
        status.* | version.*) ;;
    pr.checkout | pr.checks | pr.diff | pr.list | pr.status | pr.view) ;;
    issue.list | issue.status | issue.view) ;;
    release.download | release.list | release.verify | release.verify-asset | \
        release.view) ;;
    repo.clone | repo.gitignore | repo.license | repo.list | repo.set-default | \
        repo.view) ;;
    run.download | run.list | run.view | run.watch | workflow.list | workflow.view) ;;
    attestation.download | attestation.trusted-root | attestation.verify | cache.list | \
        extension.browse | extension.list | extension.search | gist.clone | gist.list | \
        gist.view | gpg-key.list | label.list | org.list | project.field-list | \
        project.item-list | project.list | project.view | ruleset.check | ruleset.list | \
        ruleset.view | secret.list | ssh-key.list | variable.get | variable.list) ;;
    pr. | issue. | release. | repo. | run. | workflow. | api.) ;;
    api.*) reads "$@" || refuse remote "gh api" ;;
    pr.merge) refuse merge "gh pr merge" ;;
    pr.*) refuse pull_request "gh pr $told" ;;
    issue.*) refuse issue "gh issue $told" ;;
    release.*) refuse release "gh release $told" ;;
    workflow.*) refuse deploy "gh workflow $told" ;;
    *)
        case $first in
            *[!a-z-]*) refuse remote "gh (another command)" ;;
            *) refuse remote "gh $first" ;;
        esac
        ;;
esac
exec "$next" "$@"
