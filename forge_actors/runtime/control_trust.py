"""What can be asked of trust: what a repository brings along, and taking that over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.effects import in_order, job_of
from forge_actors.domain.errors import ForgeError, InvalidInput, NotFound, Refused
from forge_actors.domain.forge_files import FOLDER, Contents, read_contents
from forge_actors.domain.schedule_edits import difference
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.trust import (
    BroughtWorkflow,
    PlannedSchedule,
    ScheduleChange,
    Trusted,
    TrustView,
    check_secrets,
    compare,
    encoded,
    prefix_of,
    source_of,
    state_of,
    trust_event,
)
from forge_actors.domain.trust_changes import TrustRemoved, TrustSaved
from forge_actors.runtime.authorities import Authorities, effects_of
from forge_actors.runtime.control_schedules import ScheduleControl
from forge_actors.runtime.control_templates import template_view
from forge_actors.runtime.control_workflows import WorkflowControl
from forge_actors.runtime.schedule_requests import request_from
from forge_actors.runtime.trusted_workflows import trusted_workflow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.changes import Change
    from forge_actors.domain.effects import Effect
    from forge_actors.domain.events import Event
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.schedules import Definition
    from forge_actors.domain.trust import TrustedRun, TrustRequest
    from forge_actors.domain.workflow_views import WorkflowView


class TrustControl(ScheduleControl, WorkflowControl):
    """The part of the port `Control` that is about trust."""

    async def trust(self, name: str) -> TrustView:
        repo, _ = await self._registry.find(name)
        return await self._trust_view(repo)

    async def trust_repository(self, name: str, request: TrustRequest) -> TrustView:
        repo, _ = await self._registry.find(name)
        found = await self.trusts.found(repo)
        before = self.trusts.trusted(repo.id)
        if found.problem is not None:
            raise Refused(f"{repo.name} cannot be trusted as it is: {found.problem}")
        if found.digest != request.digest:
            raise Refused(
                f"{FOLDER}/*.toml of {repo.name} has changed since it was shown, so"
                " nothing was taken over: look at it again"
            )
        if not found.files:
            raise Refused(
                f"{repo.name} has no {FOLDER}/*.toml; forge-actors repo trust"
                f" {repo.name} --remove takes back what was trusted"
            )
        authorised = effects_of(request.authorised, "authorised")
        contents = await trio.to_thread.run_sync(read_contents, found.files)
        check_secrets(contents.secrets, request.secrets)
        definitions = await self._definitions(repo, contents, authorised)
        trusted = Trusted(
            repo=repo.id,
            revision=1 if before is None else before.revision + 1,
            files=found.files,
            authorised=authorised,
            taken=self._clock.wall(),
        )

        def along() -> Sequence[Change]:
            self._check_unchanged(repo, before)
            data: dict[str, object] = {
                "digest": trusted.digest,
                "files": [file.name for file in trusted.files],
                "templates": len(contents.templates),
                "schedules": len(contents.schedules),
                "workflows": len(contents.workflows),
                "authorised": list(authorised),
                "secrets": list(contents.secrets),
            }
            event = self._trust_event("repository_trusted", repo, data)
            return [TrustSaved(repo.id, encoded(trusted), event)]

        seen = await self._revisions(source_of(repo.id))
        await self._apply(source_of(repo.id), definitions, seen, along)
        self.trusts.changed(repo.id, trusted=True)
        return await self._trust_view(repo)

    async def distrust_repository(self, name: str) -> TrustView:
        repo, _ = await self._registry.find(name)
        before = self.trusts.trusted(repo.id)
        if before is None:
            raise Refused(f"nothing of {repo.name} is trusted")

        def along() -> Sequence[Change]:
            self._check_unchanged(repo, before)
            event = self._trust_event("repository_untrusted", repo, {})
            return [TrustRemoved(repo.id, event)]

        await self._apply(source_of(repo.id), (), None, along)
        self.trusts.changed(repo.id, trusted=False)
        return await self._trust_view(repo)

    async def run_trusted_workflow(
        self, repo: str, name: str, wanted: TrustedRun, *, origin: str = "cli"
    ) -> WorkflowView:
        of, _ = await self._registry.find(repo)
        filed = await self.trusts.workflow(of, name)
        trusted = self.trusts.trusted(of.id)
        authorised = () if trusted is None else trusted.authorised
        authorities = Authorities(self._store, attended=self._served is not None)
        may = authorities.at_most(job_of(origin), authorised)
        request = trusted_workflow(of, filed, may)
        request = structs.replace(
            request,
            name=wanted.name or request.name,
            parameters={**request.parameters, **wanted.parameters},
            request_id=wanted.request_id,
        )
        return await self.run_workflow(request, dry_run=wanted.dry_run, origin=origin)

    # -- the parts -------------------------------------------------------------------

    def _check_unchanged(self, repo: Repository, before: Trusted | None) -> None:
        if self._registry.get(repo.id) is None:
            raise NotFound(f"{repo.name} was removed")
        now = self.trusts.trusted(repo.id)
        if (now and now.revision) != (before and before.revision):
            raise Refused(
                f"somebody else has changed what is trusted of {repo.name} meanwhile:"
                " look at it again"
            )

    def _trust_event(
        self, kind: str, repo: Repository, data: dict[str, object]
    ) -> Event:
        return trust_event(kind, repo.id, repo.name, self._clock.now(), data)

    async def _definitions(
        self, repo: Repository, contents: Contents, authorised: Sequence[Effect]
    ) -> tuple[Definition, ...]:
        """The schedules of the files, all of what they say checked.

        Raises:
            InvalidInput: naming the file and the field.
        """
        for template in contents.templates:
            await trio.lowlevel.checkpoint()
            sample = structs.replace(template.sample(), repo=repo.id)
            if sample.cwd != template.request.cwd:
                # Which folder it is says whoever submits it.
                sample = structs.replace(sample, cwd=None)
            try:
                self._admission.check(sample, repo, None)
            except InvalidInput as error:
                field = f"{FOLDER}: template {template.name!r}.{error.field}"
                raise InvalidInput(field, error.problem) from None
        for workflow in contents.workflows:
            try:
                wanted = trusted_workflow(repo, workflow, authorised)
                await self.run_workflow(wanted, dry_run=True)
            except InvalidInput as error:
                field = f"{workflow.file}: {error.field}"
                raise InvalidInput(field, error.problem) from None
        found = []
        for filed in contents.schedules:
            await trio.lowlevel.checkpoint()
            may = in_order(set(authorised) & set(filed.effects))
            job = {**filed.request.job, **({"authorised": list(may)} if may else {})}
            request = structs.replace(
                filed.request,
                name=f"{prefix_of(repo.name)}{filed.request.name}",
                repo=repo.id,
                job=job,
            )
            try:
                found.append(await self._definition(request, source_of(repo.id)))
            except InvalidInput as error:
                field = f"{filed.where}.{error.field}"
                raise InvalidInput(field, error.problem) from None
        return tuple(found)

    async def _trust_view(self, repo: Repository) -> TrustView:
        found = await self.trusts.found(repo)
        trusted = self.trusts.trusted(repo.id)
        problem, contents = found.problem, Contents()
        schedules: list[PlannedSchedule] = []
        authorised = () if trusted is None else trusted.authorised
        if problem is None:
            try:
                contents = await trio.to_thread.run_sync(read_contents, found.files)
                definitions = await self._definitions(repo, contents, authorised)
                schedules = await self._planned(repo, definitions)
            except ForgeError as error:
                problem = str(error)
        return TrustView(
            repo=repo.name,
            path=repo.path,
            state=state_of(trusted, found),
            problem=problem,
            digest=found.digest,
            trusted=None if trusted is None else trusted.digest,
            trusted_at=None if trusted is None else timestamp(trusted.taken),
            authorised=list(authorised),
            files=compare(trusted, found),
            templates=[
                template_view(template, repo.name, authorised)
                for template in contents.templates
            ],
            schedules=schedules,
            workflows=[
                BroughtWorkflow(each.name, each.file.removeprefix(f"{FOLDER}/"))
                for each in contents.workflows
            ],
            secrets=list(contents.secrets),
            effects=list(contents.effects),
        )

    async def _planned(
        self, repo: Repository, definitions: tuple[Definition, ...]
    ) -> list[PlannedSchedule]:
        told = difference(await self._all(), definitions, source_of(repo.id))
        every: list[tuple[ScheduleChange, Definition]] = [
            *(("added", each) for each in told.added),
            *(("changed", each) for _, each in told.changed),
            *(("removed", each.definition) for each in told.removed),
            *(("unchanged", each.definition) for each in told.unchanged),
        ]
        return [
            PlannedSchedule(
                each.name,
                change,
                str(each.trigger),
                request_from(each, repo.name)["job"],
            )
            for change, each in sorted(every, key=lambda pair: pair[1].name)
        ]
