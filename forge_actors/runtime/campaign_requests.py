"""From what people write of a campaign to what it is begun with."""

from __future__ import annotations

from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from msgspec import structs

from forge_actors.domain.campaigns import ITEM, ITEMS, MAX_ITEM, expanded, usable
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.placeholders import names_in
from forge_actors.domain.workflow_definitions import (
    MAX_CANARY,
    MAX_STEPS,
    Definition,
    StepDefinition,
    check_graph,
)
from forge_actors.domain.workflow_views import StepRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.workflow_views import ItemsRequest, WorkflowRequest
    from forge_actors.runtime.workflow_requests import Definer

#: Jobs of a campaign at once, where it does not say.
PARALLEL = 4
#: Names that are looked at for a pattern of files.
MAX_LOOKED_AT = 200_000


class CampaignDefiner:
    """Makes the definition of one campaign; `names` are those of the repositories that
    may have new jobs."""

    def __init__(
        self, request: WorkflowRequest, definer: Definer, names: Sequence[str]
    ) -> None:
        self._request = request
        self._definer = definer
        self._names = names

    async def define(self) -> Definition:
        """What the request says, checked.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        request = self._request
        self._definer.check()
        if request.steps:
            raise InvalidInput("step", "a campaign has a [template] and no steps")
        if request.template is None or request.items is None:
            missing = "template" if request.template is None else "items"
            raise InvalidInput(missing, "is missing: a campaign has one")
        if not 0 <= request.canary <= MAX_CANARY:
            raise InvalidInput("canary", f"must be from 0 to {MAX_CANARY}")
        if request.stop_after is not None and not 1 <= request.stop_after <= MAX_STEPS:
            raise InvalidInput("stop_after", f"must be from 1 to {MAX_STEPS}")
        items, first = await self._items(request.items)
        definition = Definition(
            name=request.name,
            kind="campaign",
            steps=first,
            on_failure=request.on_failure,
            parallel=request.parallel or PARALLEL,
            stop_after=request.stop_after,
            items=items,
            template=await self._template(items),
            canary=request.canary,
            parameters=request.parameters,
            source=request.source,
        )
        if items:
            check_graph(expanded(definition, items))
        return definition

    async def _template(self, items: tuple[str, ...]) -> StepDefinition:
        """What is done for each; for the items that are known it is checked."""
        template = self._request.template
        assert template is not None, self._request
        named = template.repo or self._request.repo
        if named is None:
            raise InvalidInput("template.repo", "is missing: which repository is it?")
        step = StepRequest(
            name=ITEM, job=template.job, repo=named, retries=template.retries
        )
        made = self._definer.step_of(step, "template")
        request = made.request
        assert request is not None, step
        known = {*self._request.parameters, ITEM}
        for name in sorted(names_in(request) - known):
            raise InvalidInput("template.job", f"${{{name}}} is no parameter")
        if named != f"${{{ITEM}}}":
            return await self._definer.placed(made, named, "template")
        for index, item in enumerate(items):
            await self._definer.place(item, f"items[{index}]")
        return structs.replace(made, request=structs.replace(request, repo=named))

    async def _items(
        self, items: ItemsRequest
    ) -> tuple[tuple[str, ...], tuple[StepDefinition, ...]]:
        """What it is about, or the step that finds that out."""
        given = [name for name in items.__struct_fields__ if getattr(items, name)]
        if len(given) != 1:
            raise InvalidInput(
                "items",
                "one of list, repositories, files and command says what it is about",
            )
        if items.command is not None:
            job = {"argv": items.command.argv, "read_only": True}
            step = StepRequest(name=ITEMS, job=job, repo=items.command.repo)
            made = self._definer.step_of(step, "items.command")
            made = await self._definer.placed(made, items.command.repo, "items.command")
            return (), (structs.replace(made, gives_items=True),)
        if items.of is not None:
            found = usable(items.of)
            if any(len(item) > MAX_ITEM for item in items.of):
                raise InvalidInput("items.list", f"one has over {MAX_ITEM} characters")
        elif items.files is not None:
            repo, checkout = await self._definer.place(items.files.repo, "items.files")
            root = repo.path if checkout is None else checkout.root
            found = await trio.to_thread.run_sync(_files, root, items.files.glob)
        else:
            patterns = items.repositories or []
            found = tuple(
                name
                for name in self._names
                if any(fnmatchcase(name, pattern) for pattern in patterns)
            )
        if not 1 <= len(found) <= MAX_STEPS:
            raise InvalidInput(
                f"items.{'list' if given[0] == 'of' else given[0]}",
                f"means {len(found)} items; a campaign has from 1 to {MAX_STEPS}",
            )
        return found, ()


def _files(root: str, pattern: str) -> tuple[str, ...]:
    """What a pattern means in a checkout, in order.

    Raises:
        InvalidInput: it is none, leads out of the checkout, or means too much.
    """
    if not pattern or pattern.startswith("/") or ".." in pattern.split("/"):
        raise InvalidInput("items.files.glob", f"{pattern!r} is no pattern below it")
    top, found = Path(root), []
    try:
        for index, path in enumerate(top.glob(pattern)):
            if index >= MAX_LOOKED_AT:
                problem = f"means more than {MAX_LOOKED_AT} names"
                raise InvalidInput("items.files.glob", problem)
            name = path.relative_to(top)
            if name.parts and name.parts[0] != ".git":
                found.append(str(name))
    except (OSError, ValueError) as error:
        raise InvalidInput("items.files.glob", str(error)) from None
    return usable(sorted(found))
