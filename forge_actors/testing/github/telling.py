"""Repositories and issues in the form in which GitHub sends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.testing.github.world import BEGIN, moment

if TYPE_CHECKING:
    from forge_actors.testing.github.world import Issue, Repository, World


def repository(world: World, told: Repository, base: str, site: str) -> dict[str, Any]:
    """`base` is where the interface is, `site` where people go."""
    count = sum(
        issue.repository == told.id and issue.state == "open" and not issue.deleted
        for issue in world.issues.values()
    )
    owner = {"login": told.owner, "id": 11, "node_id": "O_fake11"}
    return {
        "id": told.id,
        "node_id": f"R_fake{told.id}",
        "name": told.name,
        "full_name": told.full_name,
        "owner": {**owner, "type": "Organization", "site_admin": False},
        "private": told.private,
        "visibility": "private" if told.private else "public",
        "html_url": f"{site}/{told.full_name}",
        "url": f"{base}/repos/{told.full_name}",
        "fork": False,
        "archived": told.archived,
        "disabled": False,
        "has_issues": told.has_issues,
        "default_branch": "main",
        "open_issues_count": count,
        "created_at": moment(BEGIN),
        "updated_at": moment(BEGIN),
        "pushed_at": moment(BEGIN),
    }


def issue(world: World, told: Issue, base: str, site: str) -> dict[str, Any]:
    of = world.place(told).full_name
    api, page = f"{base}/repos/{of}", f"{site}/{of}"
    url = f"{api}/issues/{told.number}"
    kind = "pull" if told.pull_request else "issues"
    body: dict[str, Any] = {
        "id": told.id,
        "node_id": f"I_fake{told.id}",
        "number": told.number,
        "state": told.state,
        "state_reason": told.reason,
        "title": told.title,
        "body": told.body,
        "locked": False,
        "comments": 0,
        "url": url,
        "html_url": f"{page}/{kind}/{told.number}",
        "repository_url": api,
        "labels_url": f"{url}/labels{{/name}}",
        "comments_url": f"{url}/comments",
        "events_url": f"{url}/events",
        "user": {"login": "dev", "id": 21, "type": "User"},
        "labels": [
            {"id": 500 + place, "name": name, "color": "ededed", "default": False}
            for place, name in enumerate(told.labels)
        ],
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "created_at": moment(told.created),
        "updated_at": moment(told.updated),
        "closed_at": moment(told.closed),
        "author_association": "MEMBER",
        **_relations(world, told, base),
    }
    if told.pull_request:
        pull = f"{api}/pulls/{told.number}"
        shown = f"{page}/pull/{told.number}"
        body["draft"] = False
        body["pull_request"] = {
            "url": pull,
            "html_url": shown,
            "diff_url": f"{shown}.diff",
            "patch_url": f"{shown}.patch",
            "merged_at": None,
        }
    return body


def _relations(world: World, told: Issue, base: str) -> dict[str, Any]:
    children = [world.issues[each] for each in told.children]
    done = sum(child.state == "closed" for child in children)
    parent = None if told.parent is None else world.issues[told.parent]
    blockers = [world.issues[each] for each in told.blockers]
    blocking = [each for each in world.issues.values() if told.id in each.blockers]
    return {
        "parent_issue_url": None
        if parent is None
        else f"{base}/repos/{world.place(parent).full_name}/issues/{parent.number}",
        "sub_issues_summary": {
            "total": len(children),
            "completed": done,
            "percent_completed": 100 * done // len(children) if children else 0,
        },
        "issue_dependencies_summary": {
            "blocked_by": sum(each.state == "open" for each in blockers),
            "blocking": sum(each.state == "open" for each in blocking),
            "total_blocked_by": len(blockers),
            "total_blocking": len(blocking),
        },
    }
