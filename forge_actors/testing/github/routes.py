"""What a GitHub for tests answers to a request that nothing goes wrong with."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from forge_actors.testing.github import pulls, telling
from forge_actors.testing.github.world import HOUR, moment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.testing.github.world import Account, Issue, Repository, World

DOCS = "https://docs.github.com/rest"
VERSIONS = ("2022-11-28", "2026-03-10")
_ROUTE = re.compile(
    r"/(?:repos/(?P<owner>[^/]+)/(?P<name>[^/]+)|repositories/(?P<id>[0-9]+))"
    r"(?:/issues(?:/(?P<number>[0-9]+)(?:/(?P<more>.+))?)?)?"
)


@dataclass
class Request:
    method: str
    #: Behind the prefix of the interface.
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: bytes = b""

    @classmethod
    def of(
        cls, method: str, target: str, headers: Mapping[str, str], body: bytes = b""
    ) -> Request:
        path, _, query = target.partition("?")
        return cls(method, path, dict(parse_qsl(query)), headers, body)


@dataclass
class Response:
    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """The answer to a request that cannot be met."""

    def __init__(self, status: int, message: str, **headers: str) -> None:
        super().__init__(message)
        told = {"message": message, "documentation_url": DOCS, "status": str(status)}
        self.response = Response(status, _json(told), headers)


class Routes:
    """`base` is where the interface is, as it is written in what is sent."""

    def __init__(self, world: World, base: str, site: str) -> None:
        self._world = world
        self._base = base
        self._site = site
        #: Whether it tells sub-issues and dependencies; older servers do not.
        self.relations = True
        #: Whether pull requests can be opened; without it nothing can be written.
        self.writable = False

    def answer(self, request: Request) -> Response:
        if "user-agent" not in request.headers:
            text = b"Request forbidden by administrative rules."
            return Response(403, text, {"content-type": "text/plain"})
        token = _token(request.headers.get("authorization", ""))
        account = self._world.anonymous
        try:
            if token is not None:
                if token not in self._world.tokens:
                    raise Refusal(401, "Bad credentials")
                account = self._world.tokens[token]
            self._check(request, account)
            response = self._answer(request, token)
        except Refusal as refusal:
            response = refusal.response
        return self._finished(request, response, token, account)

    def _check(self, request: Request, account: Account) -> None:
        version = request.headers.get("x-github-api-version", VERSIONS[0])
        if version not in VERSIONS:
            raise Refusal(400, f"Version {version} is not supported")
        writes = self.writable and pulls.is_list(request.path)
        if request.method != "GET" and not (writes and request.method == "POST"):
            raise Refusal(405, "Method Not Allowed")
        if self._world.limits and account.used >= account.limit:
            whom = f"user ID {account.id}" if account.id else "127.0.0.1"
            raise Refusal(403, f"API rate limit exceeded for {whom}.")

    def _answer(self, request: Request, token: str | None) -> Response:
        if request.path == "/rate_limit":
            return Response(200, _json({"resources": {"core": {}}}))
        if (of := pulls.is_list(request.path)) is not None:
            repository = self._repository(of, request, token)
            return self._pulls(request, repository, token)
        found = _ROUTE.fullmatch(request.path)
        if found is None:
            raise Refusal(404, "Not Found")
        repository = self._repository(found, request, token)
        if "/issues" not in request.path[max(found.end("name"), found.end("id")) :]:
            told = telling.repository(self._world, repository, self._base, self._site)
            return Response(200, _json(told))
        if not repository.has_issues:
            raise Refusal(410, "Issues has been disabled in this repository.")
        if found["number"] is None:
            return self._page(request, repository, self._changed(request, repository))
        issue = self._issue(repository, int(found["number"]), request, found, token)
        return self._of_issue(request, repository, issue, found["more"])

    def _pulls(self, request: Request, of: Repository, token: str | None) -> Response:
        if request.method == "GET":
            told = pulls.listed(self._world, of, request.query)
            return Response(200, _json([pulls.told(of, each) for each in told]))
        if token is None:
            raise Refusal(401, "Requires authentication")
        made = pulls.opened(self._world, of, request.body)
        if isinstance(made, str):
            raise Refusal(422, f"Validation Failed: {made}")
        return Response(201, _json(pulls.told(of, made)))

    def _repository(
        self, found: re.Match[str], request: Request, token: str | None
    ) -> Repository:
        if found["id"] is not None:
            known = self._world.repositories.get(int(found["id"]))
            old = False
        else:
            known, old = self._world.named(found["owner"], found["name"])
        if known is None or not self._visible(known, token):
            raise Refusal(404, "Not Found")
        if old:
            raise self._moved(known, request.path[found.end("name") :], request)
        return known

    def _issue(
        self,
        repository: Repository,
        number: int,
        request: Request,
        found: re.Match[str],
        token: str | None,
    ) -> Issue:
        issue = self._world.numbered(repository, number)
        if issue is None:
            moved = self._world.old_places.get((repository.id, number))
            if moved is None:
                raise Refusal(404, "Not Found")
            issue = self._world.issues[moved]
            to = self._world.place(issue)
            if not self._visible(to, token):
                raise Refusal(404, "Not Found")
            rest = request.path[found.end("number") :]
            raise self._moved(to, f"/issues/{issue.number}{rest}", request)
        if issue.deleted:
            raise Refusal(410, "This issue was deleted")
        return issue

    def _moved(self, to: Repository, rest: str, request: Request) -> Refusal:
        query = f"?{urlencode(request.query)}" if request.query else ""
        url = f"{self._base}/repositories/{to.id}{rest}{query}"
        refusal = Refusal(301, "Moved Permanently", location=url)
        told = {"message": "Moved Permanently", "url": url, "documentation_url": DOCS}
        refusal.response.body = _json(told)
        return refusal

    def _of_issue(
        self, request: Request, of: Repository, issue: Issue, more: str | None
    ) -> Response:
        issues = self._world.issues
        if more is None:
            return Response(200, _json(self._told(issue)))
        if not self.relations:
            raise Refusal(404, "Not Found")
        match more:
            case "sub_issues":
                return self._page(request, of, [issues[i] for i in issue.children])
            case "dependencies/blocked_by":
                return self._page(request, of, [issues[i] for i in issue.blockers])
            case "dependencies/blocking":
                found = [each for each in issues.values() if issue.id in each.blockers]
                return self._page(request, of, found)
            case "parent" if issue.parent is not None:
                return Response(200, _json(self._told(issues[issue.parent])))
            case _:
                raise Refusal(404, "Not Found")

    def _changed(self, request: Request, of: Repository) -> list[Issue]:
        query = request.query
        found = [
            issue
            for issue in self._world.issues.values()
            if issue.repository == of.id and not issue.deleted
        ]
        state = query.get("state", "open")
        labels = {name for name in query.get("labels", "").lower().split(",") if name}
        since = query.get("since", "")
        found = [
            issue
            for issue in found
            if state in ("all", issue.state)
            and labels <= {name.lower() for name in issue.labels}
            and (moment(issue.updated) or "") >= since
        ]
        key = query.get("sort", "created")
        when = (lambda i: i.updated) if key == "updated" else (lambda i: i.created)
        return sorted(found, key=when, reverse=query.get("direction", "desc") == "desc")

    def _page(self, request: Request, of: Repository, issues: list[Issue]) -> Response:
        size = min(int(request.query.get("per_page", "30")), 100)
        page = int(request.query.get("page", "1"))
        last = max(1, -(-len(issues) // size))
        shown = issues[(page - 1) * size : page * size]
        response = Response(200, _json([self._told(each) for each in shown]))
        path = request.path
        if path.startswith("/repos/"):
            rest = path.split("/", 4)[4]
            path = f"/repositories/{of.id}/{rest}"
        rels = {"prev": page - 1, "next": page + 1, "last": last, "first": 1}
        if page == 1:
            del rels["prev"], rels["first"]
        if page >= last:
            del rels["next"], rels["last"]
        links = [
            f"<{self._base}{path}?{urlencode({**request.query, 'page': number})}>;"
            f' rel="{rel}"'
            for rel, number in rels.items()
        ]
        if links and last > 1:
            response.headers["link"] = ", ".join(links)
        return response

    def _told(self, issue: Issue) -> dict[str, Any]:
        return telling.issue(self._world, issue, self._base, self._site)

    def _visible(self, repository: Repository, token: str | None) -> bool:
        if not repository.private:
            return True
        return token is not None and token in (repository.visible_to or (token,))

    def _finished(
        self,
        request: Request,
        response: Response,
        token: str | None,
        account: Account,
    ) -> Response:
        """With its mark and its limits; without its body if that is known."""
        world = self._world
        headers = {
            "content-type": "application/json; charset=utf-8",
            "date": formatdate(world.now, usegmt=True),
            "x-github-media-type": "github.v3; format=json",
            "x-github-request-id": "FAKE:0001",
            "vary": "Accept, Authorization, Accept-Encoding",
            **response.headers,
        }
        free = request.path == "/rate_limit" or response.status == 401
        if response.status == 200:
            accept = request.headers.get("accept", "")
            seen = response.body + f"{token}|{accept}".encode()
            headers["etag"] = etag = f'W/"{hashlib.sha256(seen).hexdigest()}"'
            headers["cache-control"] = "private, max-age=60, s-maxage=60"
            if request.headers.get("if-none-match") == etag:
                response = Response(304, b"")
                free = token is not None
        if world.limits:
            if not free:
                account.used = min(account.used + 1, account.limit)
            headers |= {
                "x-ratelimit-limit": str(account.limit),
                "x-ratelimit-remaining": str(account.limit - account.used),
                "x-ratelimit-used": str(account.used),
                "x-ratelimit-reset": str(int(world.now) + HOUR),
                "x-ratelimit-resource": "core",
            }
        return Response(response.status, response.body, headers)


def _token(authorization: str) -> str | None:
    kind, _, value = authorization.partition(" ")
    return value if kind.lower() in ("bearer", "token") else None


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
