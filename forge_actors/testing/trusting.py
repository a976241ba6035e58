"""The part of the fake `Control` about trust, templates, and with them schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import Accepted, JobRequest, convert
from forge_actors.domain.trust import TrustView, check_secrets
from forge_actors.domain.workflow_views import WorkflowView
from forge_actors.testing.schedules import FakeSchedules

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.templates import FromTemplate, TemplateView
    from forge_actors.domain.trust import TrustedRun, TrustRequest


class FakeTrust(FakeSchedules):
    """What each repository brings along is in `brought`, by its name; what was
    submitted by templates in `by_template`."""

    def __init__(self) -> None:
        FakeSchedules.__init__(self)
        self.brought: dict[str, TrustView] = {}
        self.kept_templates: list[TemplateView] = []
        #: The trusted workflows that were begun.
        self.begun: list[tuple[str, str, TrustedRun]] = []
        self.by_template: list[tuple[str, FromTemplate]] = []

    async def trust(self, name: str) -> TrustView:
        if name not in self.brought:
            raise NotFound(f"repo: no repository is called {name!r}")
        return self.brought[name]

    async def trust_repository(self, name: str, request: TrustRequest) -> TrustView:
        view = await self.trust(name)
        if view.digest != request.digest:
            raise Refused("it has changed since it was shown")
        check_secrets(view.secrets, request.secrets)
        self.brought[name] = structs.replace(
            view, state="trusted", trusted=view.digest, authorised=request.authorised
        )
        return self.brought[name]

    async def distrust_repository(self, name: str) -> TrustView:
        view = await self.trust(name)
        if view.trusted is None:
            raise Refused(f"nothing of {name} is trusted")
        self.brought[name] = structs.replace(view, state="untrusted", trusted=None)
        return self.brought[name]

    async def run_trusted_workflow(
        self, repo: str, name: str, wanted: TrustedRun, *, origin: str = "cli"
    ) -> WorkflowView:
        await self.trust(repo)
        self.begun.append((repo, name, wanted))
        return WorkflowView(
            id="w1",
            name=wanted.name or name,
            kind="portfolio",
            state="running",
            why=None,
            digest="d",
            origin=origin,
            made_at="2026-01-01T00:00:00.000Z",
            ended_at=None,
            counts={},
            source=f"trust:{repo}/{name}",
            steps=(),
        )

    async def templates(self, repo: str | None = None) -> list[TemplateView]:
        return [
            view
            for view in self.kept_templates
            if repo is None or view.repo in (None, repo)
        ]

    async def template(self, name: str, repo: str | None = None) -> TemplateView:
        for view in await self.templates(repo):
            if view.name == name:
                return view
        raise NotFound(f"there is no template {name!r} here")

    async def jobs_of_templates(
        self, wishes: Mapping[int, tuple[str, FromTemplate]]
    ) -> dict[int, JobRequest]:
        made: dict[int, JobRequest] = {}
        for index, (name, wanted) in wishes.items():
            try:
                view = await self.template(name)
            except NotFound as error:
                raise NotFound(f"jobs[{index}]: {error}") from None
            for value in wanted.values:
                if value not in view.parameters:
                    raise InvalidInput(f"jobs[{index}].values.{value}", "is none")
            words = [*view.job["argv"], *map(str, wanted.values.values())]
            table = {"origin": wanted.origin, "parent": wanted.parent, **wanted.job}
            table |= {"repo": wanted.repo, "argv": words}
            made[index] = convert(table, JobRequest)
        return made

    async def submit_template(self, name: str, wanted: FromTemplate) -> Accepted:
        await self.template(name)
        self.by_template.append((name, wanted))
        return Accepted(f"job{len(self.by_template)}")
