"""What can be asked of templates: those of the home, and those that are trusted."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

import msgspec
import trio
from msgspec import structs

from forge_actors.domain.effects import in_order, job_of
from forge_actors.domain.errors import InvalidInput, NotFound
from forge_actors.domain.requests import JobRequest, convert, nearest
from forge_actors.domain.templates import (
    BESIDES,
    FromTemplate,
    Template,
    TemplateView,
    check_folder,
    instance,
)
from forge_actors.runtime.authorities import Authorities
from forge_actors.runtime.control_base import ControlBase

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from forge_actors.domain.effects import Effect
    from forge_actors.domain.repositories import Repository
    from forge_actors.domain.requests import Accepted

    #: A template, and what its jobs may do to the outside; None: as a person.
    Meant = tuple[Template, tuple[Effect, ...] | None]


log = logging.getLogger(__name__)

#: Jobs of a batch that are made before others get their turn.
MADE_AT_ONCE = 500


class TemplateControl(ControlBase):
    """The part of the port `Control` that is about templates."""

    async def templates(self, repo: str | None = None) -> list[TemplateView]:
        own = await self.own_templates.read()
        names = {template.name for template in own}
        views = [template_view(template, None, ()) for template in own]
        for known in await self._repositories_meant(repo):
            try:
                found = await self._views_of(known)
            except InvalidInput as error:
                if repo is not None:
                    raise
                # Another release took it over; the others have theirs.
                log.warning("templates of %s cannot be used: %s", known.name, error)
                continue
            views += [structs.replace(v, hidden=v.name in names) for v in found]
        return views

    async def template(self, name: str, repo: str | None = None) -> TemplateView:
        views = await self.templates(repo)
        found = [view for view in views if view.name == name and not view.hidden]
        if not found:
            raise _unknown(name, [view.name for view in views])
        if len(found) > 1:
            where = ", ".join(str(view.repo) for view in found)
            raise InvalidInput("repo", f"is missing: {name!r} is one of {where}")
        return found[0]

    async def submit_template(self, name: str, wanted: FromTemplate) -> Accepted:
        request = await self._made(name, wanted, {}, {})
        [accepted] = await self._admission.submit([request])
        return accepted

    async def jobs_of_templates(
        self, wishes: Mapping[int, tuple[str, FromTemplate]]
    ) -> dict[int, JobRequest]:
        repos: dict[str, Repository] = {}
        meant: dict[tuple[str, str], Meant] = {}
        made: dict[int, JobRequest] = {}
        for index, (name, wanted) in wishes.items():
            try:
                made[index] = await self._made(name, wanted, repos, meant)
            except InvalidInput as error:
                field = f"jobs[{index}].{error.field}"
                raise InvalidInput(
                    field, error.problem, allowed=error.allowed
                ) from None
            except NotFound as error:
                raise NotFound(f"jobs[{index}]: {error}") from None
            if len(made) % MADE_AT_ONCE == 0:
                await trio.lowlevel.checkpoint()
        return made

    # -- the parts -------------------------------------------------------------------

    async def _made(
        self,
        name: str,
        wanted: FromTemplate,
        repos: dict[str, Repository],
        meant: dict[tuple[str, str], Meant],
    ) -> JobRequest:
        """The job of one; what was found for it is found for others too."""
        if wanted.repo not in repos:
            repos[wanted.repo] = (await self._registry.find(wanted.repo))[0]
        key = (name, repos[wanted.repo].id)
        if key not in meant:
            meant[key] = await self._template_meant(name, repos[wanted.repo])
        return self._job(name, *meant[key], wanted)

    def _job(
        self,
        name: str,
        template: Template,
        may: tuple[Effect, ...] | None,
        wanted: FromTemplate,
    ) -> JobRequest:
        request = instance(template, wanted.values)
        for field in wanted.job:
            if field not in BESIDES:
                raise InvalidInput(
                    f"job.{field}", "is what the template says", allowed=BESIDES
                )
        besides = convert({"repo": wanted.repo, "argv": [], **wanted.job}, JobRequest)
        given = {field: getattr(besides, field) for field in wanted.job}
        request = structs.replace(
            request,
            repo=wanted.repo,
            parent=wanted.parent,
            origin=wanted.origin,
            **given,
        )
        if may is None:
            return request
        if request.cwd is not None:
            check_folder(request.cwd, "job.cwd")
        parent = wanted.parent
        asks = job_of(wanted.origin) if parent is None else parent.job
        authorities = Authorities(self._store, attended=self._served is not None)
        return structs.replace(
            request,
            origin=f"template:{name}",
            authorised=list(authorities.at_most(asks, may)),
        )

    async def _template_meant(self, name: str, repo: Repository) -> Meant:
        """The template, and what a person allows its jobs if it is a repository's."""
        own = await self.own_templates.read()
        for template in own:
            if template.name == name:
                return template, None
        theirs = (await self.trusts.contents(repo.id)).templates
        trusted = self.trusts.trusted(repo.id)
        for template in theirs:
            if template.name == name and trusted is not None:
                may = set(trusted.authorised) & set(template.effects)
                return template, in_order(may)
        raise _unknown(name, [template.name for template in (*own, *theirs)])

    async def _repositories_meant(self, repo: str | None) -> list[Repository]:
        if repo is not None:
            return [(await self._registry.find(repo))[0]]
        known = map(self._registry.get, self._store.trusting())
        return sorted(filter(None, known), key=lambda each: each.name)

    async def _views_of(self, repo: Repository) -> list[TemplateView]:
        trusted = self.trusts.trusted(repo.id)
        if trusted is None:
            return []
        contents = await self.trusts.contents(repo.id)
        return [
            template_view(template, repo.name, trusted.authorised)
            for template in contents.templates
        ]


def template_view(
    template: Template, repo: str | None, authorised: Sequence[Effect]
) -> TemplateView:
    job: dict[str, Any] = msgspec.to_builtins(template.request)
    job.pop("repo", None)
    return TemplateView(
        name=template.name,
        repo=repo,
        description=template.description,
        parameters=template.parameters,
        job=job,
        authorised=list(in_order(set(authorised) & set(template.effects))),
    )


def _unknown(name: str, known: Sequence[str]) -> NotFound:
    near = nearest(name, known)
    hint = f"; did you mean {near!r}?" if near else ""
    return NotFound(
        f"there is no template {name!r} here{hint}: one of a repository has to be"
        " trusted first, with forge-actors repo trust"
    )
