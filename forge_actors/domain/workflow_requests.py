"""The job of a step, with what the steps before it came to."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.placeholders import filled, names_in

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.workflow_definitions import StepDefinition
    from forge_actors.domain.workflow_steps import Step


def request_id(workflow: str, step: str, number: int) -> str:
    """The same for the same try of a step, so it has one job."""
    digest = hashlib.sha256(f"{workflow}\0{step}\0{number}".encode()).hexdigest()
    return f"wf-{digest[:24]}"


def request_of(
    defined: StepDefinition,
    parameters: Mapping[str, str],
    steps: Mapping[str, Step],
) -> JobRequest:
    """The job of a step, its places `${NAME}` and `${STEP.OUTPUT}` filled, which takes
    files from the jobs of others.

    Raises:
        InvalidInput: an output is not there, or a step that keeps files had no job.
    """
    assert defined.request is not None, defined
    values: dict[str, str] = {}
    given = {**parameters, **defined.values}
    for name in names_in(defined.request):
        if name in given:
            values[name] = given[name]
            continue
        of, _, output = name.partition(".")
        step = steps.get(of)
        if step is None or output not in step.outputs:
            raise InvalidInput(
                "job", f"step {of!r} has no output {output!r}, which {name!r} is to be"
            )
        values[name] = step.outputs[output]
    made = filled(defined.request, values)
    # Other steps find its files in a folder of this name.
    name = defined.name if made.name is None else made.name
    inputs = [_input(of, pattern, steps) for of, pattern in defined.inputs]
    return structs.replace(made, name=name, inputs=inputs)


def _input(of: str, pattern: str, steps: Mapping[str, Step]) -> str:
    step = steps.get(of)
    if step is None or step.job is None:
        raise InvalidInput("inputs", f"step {of!r} had no job, so it kept no files")
    return f"{step.job}:{pattern}" if pattern else step.job
