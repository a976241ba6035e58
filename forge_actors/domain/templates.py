"""Templates: jobs with places for values, which are asked for by name.

A value fills its place and never becomes more than one argument. Where a shell would
read it there may be no place at all.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import Struct

from forge_actors.domain.effects import in_order, shown
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.placeholders import TEXTS, filled, names, names_in
from forge_actors.domain.requests import JobRequest, Parent, convert, nearest
from forge_actors.domain.shell_places import check_shells

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.effects import Effect

ParameterType = Literal["string", "integer", "number", "boolean"]
Value: TypeAlias = str | int | float | bool

#: The templates of a home's own.
TEMPLATES_FILE = "templates.toml"
MAX_PARAMETERS = 32
MAX_CHOICES = 64
#: Characters of one value, of a description, and of a name.
MAX_VALUE = 8192
MAX_DESCRIPTION = 400
MAX_NAME = 64
#: What a template cannot say of its job: whoever submits it does, or only a person may.
OWN = (
    *("repo", "request_id", "origin", "parent", "after", "unique", "authorised"),
    "work",
)
#: What can be said of one job besides its template.
BESIDES = (
    *("name", "labels", "priority", "after", "unique", "request_id"),
    *("timeout", "queue_timeout", "admission_timeout", "idle_timeout"),
)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_PARAMETER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]{1,18})?")
#: Programs that read an argument as a command, if one before it says so.
_SAMPLES: dict[ParameterType, Value] = {
    "string": "x",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
}


class Parameter(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What may be put into a place. Without a default it has to be given."""

    #: By default that of `default`, or a string.
    type: ParameterType | None = None
    default: Value | None = None
    choices: list[Value] = []
    help: str = ""

    @property
    def kind(self) -> ParameterType:
        if self.type is not None:
            return self.type
        match self.default:
            case bool():
                return "boolean"
            case int():
                return "integer"
            case float():
                return "number"
            case _:
                return "string"


class TemplateTable(Struct, frozen=True, forbid_unknown_fields=True):
    """A `[[template]]` as people write it; `job` has the fields of a job."""

    name: str
    job: dict[str, Any]
    description: str = ""
    parameters: dict[str, Parameter] = {}


class Template(Struct, frozen=True):
    """One that was checked."""

    name: str
    description: str
    parameters: dict[str, Parameter]
    #: With its places, and without a repository.
    request: JobRequest

    @property
    def effects(self) -> tuple[Effect, ...]:
        """What it says that it does to the outside, or plainly does."""
        return in_order((*self.request.effects, *shown(self.request.argv)))

    def sample(self) -> JobRequest:
        """Its job with a value in every place, to be looked at."""
        values = {
            name: parameter.default
            if parameter.default is not None
            else (parameter.choices or [_SAMPLES[parameter.kind]])[0]
            for name, parameter in self.parameters.items()
        }
        return instance(self, values)


class TemplateView(Struct, frozen=True, omit_defaults=True):
    """A template as readers see it."""

    name: str
    #: The repository that it is of; null: the home's own.
    repo: str | None
    description: str
    parameters: dict[str, Parameter]
    #: The fields of its job, with their places.
    job: dict[str, Any]
    #: The effects that a person allows its jobs.
    authorised: list[str]
    #: One of the home has the same name, which is meant then.
    hidden: bool = False


class FromTemplate(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A job to submit by a template: `job` has what can be said besides."""

    repo: str
    values: dict[str, Value] = {}
    job: dict[str, Any] = {}
    #: As in a `JobRequest`; one by the template of a repository has an origin of it.
    origin: str = "cli"
    parent: Parent | None = None


class TemplateLine(Struct, forbid_unknown_fields=True, omit_defaults=True):
    """A line of a batch: the job of a template, and what can be said besides."""

    template: str
    repo: str
    values: dict[str, Value] = {}
    name: str | None = None
    labels: list[str] = []
    priority: str | None = None
    after: list[str] = []
    unique: str | None = None
    request_id: str | None = None
    timeout: str | float | None = None
    queue_timeout: str | float | None = None
    admission_timeout: str | float | None = None
    idle_timeout: str | float | None = None

    def wish(self, request: JobRequest) -> FromTemplate:
        """The same, of whom and where its place in the batch says."""
        job = {name: value for name in BESIDES if (value := getattr(self, name))}
        return FromTemplate(
            request.repo, self.values, job, request.origin, request.parent
        )


def checked(table: TemplateTable, where: str) -> Template:
    """A template that can be used. `where` is its place in its file.

    Raises:
        InvalidInput: naming what is wrong.
    """
    if not _NAME.fullmatch(table.name):
        raise InvalidInput(
            f"{where}.name",
            f"{table.name!r} is no name of a template: 1 to {MAX_NAME} letters, digits,"
            " dots, dashes and underscores, a letter or digit first",
        )
    if len(table.description) > MAX_DESCRIPTION:
        raise InvalidInput(
            f"{where}.description", f"has more than {MAX_DESCRIPTION} characters"
        )
    _check_parameters(table.parameters, f"{where}.parameters")
    for name in OWN:
        if name in table.job:
            raise InvalidInput(f"{where}.job.{name}", "cannot be given in a template")
    wanted = {"argv": [], **table.job, "repo": ""}
    request = convert(wanted, JobRequest, where=f"{where}.job")
    if not request.argv and request.agent is None:
        raise InvalidInput(f"{where}.job.argv", "names no program to run")
    check_shells(request, f"{where}.job")
    template = Template(table.name, table.description, table.parameters, request)
    _check_places(template, where)
    return template


def instance(template: Template, values: Mapping[str, Value]) -> JobRequest:
    """The job that a template makes of values, of no repository yet.

    Raises:
        InvalidInput: naming the value that is missing, wrong or not asked for.
    """
    for name in values:
        if name not in template.parameters:
            near = nearest(name, template.parameters)
            hint = f"; did you mean {near!r}?" if near else ""
            raise InvalidInput(
                f"values.{name}",
                f"is no parameter of template {template.name!r}{hint}",
                allowed=tuple(template.parameters),
            )
    texts: dict[str, str] = {}
    for name, parameter in template.parameters.items():
        value = values.get(name, parameter.default)
        if value is None:
            raise InvalidInput(
                f"values.{name}",
                f"is missing: template {template.name!r} has no default for it; give it"
                f" with --set {name}=VALUE",
            )
        texts[name] = text_of(parameter, value, f"values.{name}")
    return filled(template.request, texts)


def text_of(parameter: Parameter, value: Value, field: str) -> str:
    """What is put into the places of a parameter.

    Raises:
        InvalidInput: it is no value of its kind, or none of those to choose from.
    """
    text = _text(parameter.kind, value, field)
    if len(text) > MAX_VALUE or "\0" in text:
        raise InvalidInput(field, f"has a NUL or more than {MAX_VALUE} characters")
    choices = [_text(parameter.kind, each, field) for each in parameter.choices]
    if choices and text not in choices:
        raise InvalidInput(field, f"{text!r} cannot be chosen", allowed=tuple(choices))
    return text


def _text(kind: ParameterType, value: Value, field: str) -> str:
    match kind, value:
        case "string", str():
            return value
        case "boolean", bool():
            return "true" if value else "false"
        case "boolean", "true" | "false":
            return str(value)
        case "integer", str() if _INTEGER.fullmatch(value):
            return str(int(value))
        case "integer", int() if not isinstance(value, bool):
            return str(value)
        case "number", str() if _NUMBER.fullmatch(value):
            return value
        case "number", int() | float() if not isinstance(value, bool):
            return repr(value)
        case _:
            article = "an" if kind == "integer" else "a"
            raise InvalidInput(field, f"{value!r} is not {article} {kind}")


def _check_parameters(parameters: Mapping[str, Parameter], where: str) -> None:
    if len(parameters) > MAX_PARAMETERS:
        raise InvalidInput(where, f"are more than {MAX_PARAMETERS}")
    for name, parameter in parameters.items():
        field = f"{where}.{name}"
        if not _PARAMETER.fullmatch(name):
            raise InvalidInput(
                field, "is no name: letters, digits, dashes and underscores"
            )
        if len(parameter.help) > MAX_DESCRIPTION:
            raise InvalidInput(field, f"has more than {MAX_DESCRIPTION} characters")
        if len(parameter.choices) > MAX_CHOICES:
            raise InvalidInput(f"{field}.choices", f"are more than {MAX_CHOICES}")
        for choice in parameter.choices:
            text_of(parameter, choice, f"{field}.choices")
        if parameter.default is not None:
            text_of(parameter, parameter.default, f"{field}.default")


def _check_places(template: Template, where: str) -> None:
    """Check that each place has a parameter, and each parameter a place."""
    for field in JobRequest.__struct_fields__:
        value = getattr(template.request, field)
        listed = value if isinstance(value, list) else [value]
        if field not in ("argv", *TEXTS) and any(
            isinstance(text, str) and any(names(text)) for text in listed
        ):
            raise InvalidInput(f"{where}.job.{field}", "cannot have places for values")
    try:
        sample = template.sample()
    except InvalidInput as error:
        raise InvalidInput(f"{where}.job.{error.field}", error.problem) from None
    unused = set(template.parameters) - names_in(template.request)
    if unused:
        name = min(unused)
        raise InvalidInput(
            f"{where}.parameters.{name}", f"has no place: there is no ${{{name}}}"
        )
    if sample.cwd is not None:
        check_folder(sample.cwd, f"{where}.job.cwd")


def check_folder(cwd: str, field: str) -> None:
    """Check that a folder is named from the root of a checkout, and is within it.

    Raises:
        InvalidInput: it is not.
    """
    if cwd.startswith(("/", "~")) or ".." in cwd.split("/"):
        raise InvalidInput(field, f"{cwd!r} is no folder within the repository")
