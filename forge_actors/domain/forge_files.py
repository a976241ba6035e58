"""What a repository brings along for its work: `.forge/*.toml`.

Schedules and templates stand in tables of any of these files, a workflow has one of its
own. Nothing here is done because a file is there: a person has to trust what it says.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from forge_actors.domain.effects import in_order, shown
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import convert
from forge_actors.domain.schedule_views import ScheduleRequest
from forge_actors.domain.templates import (
    Template,
    TemplateTable,
    check_folder,
    checked,
)
from forge_actors.domain.toml import read_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from forge_actors.domain.effects import Effect

#: The folder in a checkout.
FOLDER = ".forge"
#: Files of one repository, the bytes of one and of all of them.
MAX_FILES = 32
MAX_FILE_BYTES = 256 * 1024
MAX_BYTES = 1024 * 1024
#: Schedules, and templates, of one repository.
MAX_ENTRIES = 500
_KEYS = ("schedule", "template")
WORKFLOW = "workflow"


class ForgeFile(Struct, frozen=True):
    """One file, by its name in the folder."""

    name: str
    text: str

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode()).hexdigest()


class FiledSchedule(Struct, frozen=True):
    """A schedule, and where it stands."""

    where: str
    request: ScheduleRequest

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What its jobs say that they do to the outside, or plainly do."""
        job = self.request.job
        declared, argv = job.get("effects", ()), job.get("argv", ())
        return in_order((*_words(declared), *shown(_listed(argv))))


class FiledWorkflow(Struct, frozen=True):
    """A workflow, which has a file of its own."""

    name: str
    file: str
    text: str
    #: What the file says, decoded.
    table: dict[str, Any] = {}
    #: What any of its jobs says of secrets and of effects.
    secrets: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()

    @property
    def effects(self) -> tuple[Effect, ...]:
        return in_order(self.declared)


class Contents(Struct, frozen=True):
    """What the files of a repository say."""

    templates: tuple[Template, ...] = ()
    schedules: tuple[FiledSchedule, ...] = ()
    workflows: tuple[FiledWorkflow, ...] = ()

    @property
    def secrets(self) -> tuple[str, ...]:
        """The secrets that jobs of it would get."""
        found = {name for each in self.templates for name in each.request.secrets}
        for each in self.schedules:
            found.update(_words(each.request.job.get("secrets", ())))
        for workflow in self.workflows:
            found.update(workflow.secrets)
        return tuple(sorted(found))

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What jobs of it do to the outside, as far as that can be told."""
        found = [effect for each in self.templates for effect in each.effects]
        found += (effect for each in self.schedules for effect in each.effects)
        found += (effect for each in self.workflows for effect in each.effects)
        return in_order(found)


def digest_of(files: Iterable[ForgeFile]) -> str:
    """What tells these files, and the absence of others, from any other ones."""
    lines = sorted(f"{file.name}\0{file.digest}\n" for file in files)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def read_contents(files: Sequence[ForgeFile]) -> Contents:
    """What files say.

    Raises:
        InvalidInput: naming the file and the field that is wrong.
    """
    templates: dict[str, tuple[str, Template]] = {}
    schedules: dict[str, FiledSchedule] = {}
    workflows: dict[str, FiledWorkflow] = {}
    for file in sorted(files, key=lambda each: each.name):
        path = f"{FOLDER}/{file.name}"
        table = read_table(file.text, path)
        if WORKFLOW in table:
            workflow = _workflow(table, file, path)
            other = workflows.get(workflow.name)
            where = f"{path}: workflow.name"
            _check_new(workflow.name, other.file if other else "", where)
            workflows[workflow.name] = workflow
            continue
        for key in table:
            if key not in _KEYS:
                raise InvalidInput(
                    f"{path}: {key}",
                    "is not known; a file has [[schedule]] and [[template]] tables, or"
                    " a [workflow]",
                )
        for where, entry in _entries(table, "template", path):
            template = checked(convert(entry, TemplateTable, where=where), where)
            known = templates.get(template.name, ("", None))[0]
            _check_new(template.name, known, f"{where}.name")
            if template.request.stdin is not None:
                raise InvalidInput(f"{where}.job.stdin", _NO_INPUT)
            templates[template.name] = (path, template)
        for where, entry in _entries(table, "schedule", path):
            schedule = _schedule(entry, where)
            name = schedule.request.name
            before = schedules.get(name)
            _check_new(name, before.where if before else "", f"{where}.name")
            schedules[name] = schedule
    for found, what in ((templates, "templates"), (schedules, "schedules")):
        if len(found) > MAX_ENTRIES:
            raise InvalidInput(FOLDER, f"has more than {MAX_ENTRIES} {what}")
    return Contents(
        tuple(template for _, (_, template) in sorted(templates.items())),
        tuple(schedule for _, schedule in sorted(schedules.items())),
        tuple(workflow for _, workflow in sorted(workflows.items())),
    )


def own_templates(text: str, path: str) -> tuple[Template, ...]:
    """The templates of a home's own file.

    Raises:
        InvalidInput: naming the file and the field that is wrong.
    """
    table = read_table(text, path)
    for key in table:
        if key != "template":
            raise InvalidInput(f"{path}: {key}", "is not known; it has [[template]]s")
    found: dict[str, Template] = {}
    for where, entry in _entries(table, "template", path):
        template = checked(convert(entry, TemplateTable, where=where), where)
        _check_new(template.name, path if template.name in found else "", where)
        found[template.name] = template
    return tuple(found[name] for name in sorted(found))


_ONLY_A_PERSON = (
    "only a person can say: forge-actors repo trust NAME --authorise EFFECT"
)
_NO_INPUT = "cannot be given in a repository: it would be a file of this machine"


def _schedule(entry: dict[str, Any], where: str) -> FiledSchedule:
    if "repo" in entry:
        raise InvalidInput(f"{where}.repo", "cannot be given: it is this repository")
    if entry.get("transient"):
        raise InvalidInput(f"{where}.transient", "cannot be given in a repository")
    request = convert({**entry, "repo": ""}, ScheduleRequest, where=where)
    job = request.job
    if "authorised" in job:
        raise InvalidInput(f"{where}.job.authorised", _ONLY_A_PERSON)
    if "stdin" in job:
        raise InvalidInput(f"{where}.job.stdin", _NO_INPUT)
    if isinstance(cwd := job.get("cwd"), str):
        check_folder(cwd, f"{where}.job.cwd")
    return FiledSchedule(where, request)


def _workflow(table: dict[str, Any], file: ForgeFile, path: str) -> FiledWorkflow:
    inner = table[WORKFLOW]
    # A campaign has one [template], which is another thing than [[template]].
    if "schedule" in table or isinstance(table.get("template"), list):
        raise InvalidInput(f"{path}: {WORKFLOW}", "has to have a file of its own")
    if not isinstance(inner, dict):
        raise InvalidInput(f"{path}: {WORKFLOW}", "is written [workflow], once")
    name = inner.get("name", file.name.removesuffix(".toml"))
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"{path}: {WORKFLOW}.name", "is no name")
    try:
        if any(True for _ in _said(table, "authorised")):
            raise InvalidInput(f"{path}: authorised", _ONLY_A_PERSON)
    except RecursionError:
        raise InvalidInput(path, "is nested too deep") from None
    return FiledWorkflow(
        name,
        path,
        file.text,
        table,
        tuple(dict.fromkeys(w for v in _said(table, "secrets") for w in _words(v))),
        tuple(dict.fromkeys(w for v in _said(table, "effects") for w in _words(v))),
    )


def _said(value: object, key: str) -> Iterator[object]:
    """Every value that a key has, at whatever depth."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == key:
                yield inner
            yield from _said(inner, key)
    for inner in _listed(value):
        yield from _said(inner, key)


def _check_new(name: str, known: str, field: str) -> None:
    if known:
        raise InvalidInput(field, f"{name!r} is there twice: see {known}")


def _entries(
    table: dict[str, Any], key: str, path: str
) -> Iterable[tuple[str, dict[str, Any]]]:
    """The tables of a name, each with its place."""
    try:
        # TOML has times of its own; others say them as text.
        entries = json.loads(json.dumps(table.get(key, []), default=str))
    except (ValueError, RecursionError):
        raise InvalidInput(f"{path}: {key}", "is nested too deep") from None
    if not isinstance(entries, list) or not all(
        isinstance(entry, dict) for entry in entries
    ):
        raise InvalidInput(f"{path}: {key}", f"is written [[{key}]], once for each")
    for index, entry in enumerate(entries):
        yield f"{path}: {key}[{index}]", entry


def _listed(value: object) -> Sequence[object]:
    return value if isinstance(value, list | tuple) else ()


def _words(value: object) -> tuple[str, ...]:
    return tuple(each for each in _listed(value) if isinstance(each, str))
