"""The part of the client that is about trust and templates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.client.schedules import ScheduleCalls
from forge_actors.domain.requests import Accepted, convert
from forge_actors.domain.templates import TemplateView
from forge_actors.domain.trust import TrustView
from forge_actors.domain.workflow_views import WorkflowView

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.templates import Value


class TemplateCalls(ScheduleCalls):
    """A repository is named by its name or a path in it."""

    async def trust(self, repo: str) -> TrustView:
        """What a repository brings along, and what of it is trusted."""
        answer = await self._call("GET", "repositories", repo, "trust")
        return convert(answer, TrustView)

    async def trust_repository(
        self,
        repo: str,
        digest: str,
        *,
        authorised: Sequence[str] = (),
        secrets: Sequence[str] = (),
    ) -> TrustView:
        """Trust what it brings along, if that is what `trust` has shown."""
        body = {
            "digest": digest,
            "authorised": list(authorised),
            "secrets": list(secrets),
        }
        answer = await self._call("POST", "repositories", repo, "trust", body=body)
        return convert(answer, TrustView)

    async def distrust_repository(self, repo: str) -> TrustView:
        """Trust it no more; its templates and schedules go, its jobs stay."""
        answer = await self._call("DELETE", "repositories", repo, "trust")
        return convert(answer, TrustView)

    async def run_trusted_workflow(
        self, /, repo: str, name: str, **wanted: Any
    ) -> WorkflowView:
        """Begin a workflow that a repository brings along: `parameters`, `name`,
        `request_id`, `dry_run`."""
        path = ("repositories", repo, "workflows", name, "run")
        return convert(await self._call("POST", *path, body=wanted), WorkflowView)

    async def templates(self, repo: str | None = None) -> list[TemplateView]:
        """Those of the home, and of one repository or all that are trusted."""
        answer = await self._call("GET", "templates", query=[("repo", repo)])
        return convert(answer["templates"], list[TemplateView])

    async def template(self, name: str, repo: str | None = None) -> TemplateView:
        answer = await self._call("GET", "templates", name, query=[("repo", repo)])
        return convert(answer, TemplateView)

    async def submit_template(
        self,
        /,
        name: str,
        repo: str,
        values: Mapping[str, Value] | None = None,
        **job: Any,
    ) -> Accepted:
        """Queue the job that a template makes of values; `job` has what can be said
        besides, such as `priority`, `labels` or `request_id`."""
        body = {"repo": repo, "values": dict(values or {}), "job": job}
        answer = await self._call("POST", "templates", name, "submit", body=body)
        return convert(answer, Accepted)
