"""From what people write of a workflow to what it is begun with."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import ForgeError, InvalidInput
from forge_actors.domain.inputs import MAX_INPUTS, split_input
from forge_actors.domain.placeholders import names_in
from forge_actors.domain.requests import JobRequest, convert
from forge_actors.domain.schedules import check_name
from forge_actors.domain.shell_places import check_shells
from forge_actors.domain.workflow_definitions import (
    MAX_GATE,
    MAX_RETRIES,
    MAX_STEPS,
    Ancestors,
    Definition,
    StepDefinition,
    check_graph,
    condition_of,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.repositories import Checkout, Repository
    from forge_actors.domain.workflow_views import StepRequest, WorkflowRequest

    Find = Callable[[str], Awaitable[tuple[Repository, Checkout | None]]]
    Check = Callable[[JobRequest, Repository, Checkout | None], None]

#: What a workflow says of each of its jobs itself.
_OWN = ("repo", "request_id", "origin", "parent", "after", "unique", "work", "inputs")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
MAX_PARAMETERS = 100
MAX_PARAMETER = 10_000


class Definer:
    """Makes the definition of one workflow; each repository is looked up once."""

    def __init__(self, request: WorkflowRequest, find: Find, check: Check) -> None:
        self._request = request
        self._find = find
        self._check = check
        self._places: dict[str, tuple[Repository, Checkout | None]] = {}

    async def define(self) -> Definition:
        """What the request says, checked.

        Raises:
            InvalidInput: naming the field that is wrong.
            NotFound, Refused: a repository is not known, or a job cannot be submitted.
        """
        request = self._request
        self.check()
        steps = request.steps
        if not 1 <= len(steps) <= MAX_STEPS:
            raise InvalidInput("step", f"there must be from 1 to {MAX_STEPS} steps")
        made = [await self._step(step, f"step[{n}]") for n, step in enumerate(steps)]
        definition = Definition(
            name=request.name,
            kind=request.kind,
            steps=tuple(made),
            on_failure=request.on_failure,
            parallel=request.parallel,
            parameters=request.parameters,
            source=request.source,
        )
        check_graph(definition)
        _check_references(definition)
        return definition

    def check(self) -> None:
        """Check what every kind of workflow says.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        request = self._request
        check_name(request.name, of="workflow")
        _check_parameters(request.parameters)
        if request.parallel is not None and not 1 <= request.parallel <= MAX_STEPS:
            raise InvalidInput("parallel", f"must be from 1 to {MAX_STEPS}")

    async def _step(self, step: StepRequest, where: str) -> StepDefinition:
        made = self.step_of(step, where)
        if step.job is None:
            return made
        named = step.repo or self._request.repo
        if named is None:
            raise InvalidInput(f"{where}.repo", "is missing: which repository is it?")
        return await self.placed(made, named, where)

    def step_of(self, step: StepRequest, where: str) -> StepDefinition:
        """A step whose job is of no repository so far.

        Raises:
            InvalidInput: naming the field that is wrong.
        """
        if step.job is None and step.gate is None:
            raise InvalidInput(where, "has no job, and no gate to ask a person")
        if not 0 <= step.retries <= MAX_RETRIES:
            raise InvalidInput(f"{where}.retries", f"must be from 0 to {MAX_RETRIES}")
        if step.gate is not None and not 1 <= len(step.gate) <= MAX_GATE:
            raise InvalidInput(f"{where}.gate", f"has from 1 to {MAX_GATE} characters")
        condition = None
        if step.condition is not None:
            condition = condition_of(step.condition, field=f"{where}.if")
        inputs = _inputs(step, f"{where}.inputs")
        return StepDefinition(
            name=step.name,
            request=None if step.job is None else _job(step.job, where),
            after=tuple(dict.fromkeys([*step.after, *(of for of, _ in inputs)])),
            when=step.when,
            condition=condition,
            retries=step.retries,
            gate=step.gate,
            inputs=inputs,
        )

    async def placed(
        self, step: StepDefinition, named: str, where: str
    ) -> StepDefinition:
        """The same, its job in a repository that a name or a path means.

        Raises:
            InvalidInput: there is none, or the job cannot be submitted there.
        """
        assert step.request is not None, step
        repo, checkout = await self.place(named, where)
        job = step.request
        linked = checkout is not None and checkout.root != repo.path
        place = checkout.root if checkout is not None and linked else repo.name
        job = structs.replace(job, repo=place)
        if not names_in(job):
            try:
                self._check(job, repo, checkout)
            except InvalidInput as error:
                field = error.field.removeprefix("job.")
                raise InvalidInput(f"{where}.job.{field}", error.problem) from None
        return structs.replace(step, repo=repo.id, request=job)

    async def place(self, named: str, where: str) -> tuple[Repository, Checkout | None]:
        """The repository that a name or a path means.

        Raises:
            InvalidInput: there is none.
        """
        if named not in self._places:
            try:
                self._places[named] = await self._find(named)
            except ForgeError as error:
                raise InvalidInput(f"{where}.repo", str(error)) from None
        return self._places[named]


def _inputs(step: StepRequest, field: str) -> tuple[tuple[str, str], ...]:
    if len(step.inputs) > MAX_INPUTS:
        raise InvalidInput(field, f"are more than {MAX_INPUTS}")
    if step.inputs and step.job is None:
        raise InvalidInput(field, "are for a step with a job")
    found = (split_input(text, field=field) for text in step.inputs)
    return tuple((of, pattern or "") for of, pattern in found)


def _job(given: dict[str, object], where: str) -> JobRequest:
    for name in _OWN:
        if name in given:
            raise InvalidInput(
                f"{where}.job.{name}", "cannot be given to a job of a workflow"
            )
    wanted = {"argv": [], **given, "repo": "."}
    job = convert(wanted, JobRequest, where=f"{where}.job")
    if not job.argv and job.agent is None:
        raise InvalidInput(f"{where}.job.argv", "names no program to run")
    check_shells(job, f"{where}.job")
    return job


def _check_parameters(parameters: dict[str, str]) -> None:
    if len(parameters) > MAX_PARAMETERS:
        raise InvalidInput("parameters", f"there are more than {MAX_PARAMETERS}")
    for name, text in parameters.items():
        if not _PARAMETER.fullmatch(name):
            raise InvalidInput(
                f"parameters.{name}",
                "is no name: letters, digits, dashes and underscores, no digit first",
            )
        if len(text) > MAX_PARAMETER:
            raise InvalidInput(
                f"parameters.{name}", f"has more than {MAX_PARAMETER} characters"
            )


def _check_references(definition: Definition) -> None:
    """Check that each place of a job will have a value when the job begins.

    Raises:
        InvalidInput: one is of nothing, or of a step that need not have ended.
    """
    ancestors = Ancestors(definition)
    jobs = {step.name: step.request for step in definition.steps}
    for index, step in enumerate(definition.steps):
        for of, _ in step.inputs:
            request = jobs.get(of)
            if request is None or not request.artifacts:
                raise InvalidInput(
                    f"step[{index}].inputs",
                    f"the job of step {of!r} keeps no artifacts",
                )
        places = names_in(step.request) if step.request is not None else set()
        for name in sorted(places - set(definition.parameters)):
            if not ancestors.has(step.name, name.partition(".")[0]):
                raise InvalidInput(
                    f"step[{index}].job",
                    f"${{{name}}} is neither a parameter nor an output of a step that"
                    " it runs after",
                )
            _check_output(jobs, *name.partition(".")[::2], f"step[{index}].job")
        condition = step.condition
        if condition is None:
            continue
        if not ancestors.has(step.name, condition.step):
            raise InvalidInput(
                f"step[{index}].if",
                f"it does not run after step {condition.step!r}",
            )
        where = f"step[{index}].if"
        _check_output(jobs, condition.step, condition.output, where)


def _check_output(
    jobs: dict[str, JobRequest | None], step: str, output: str, field: str
) -> None:
    request = jobs.get(step)
    if request is None or output not in request.outputs:
        raise InvalidInput(field, f"step {step!r} declares no output {output!r}")
