"""The reference of the HTTP interface, made from the OpenAPI document of its routes."""

from __future__ import annotations

import ast
import importlib
import json
import pkgutil
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

import forge_actors.domain
import forge_actors.edges.gateway
from docs.making.route_examples import EXAMPLES, SOCKET
from forge_actors.domain.errors import ForgeError
from forge_actors.edges.gateway.openapi import COMMON, document
from forge_actors.edges.gateway.refusal import CODES
from forge_actors.edges.gateway.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Iterator

    Json = dict[str, Any]

#: The nouns whose routes begin with other words than themselves; any other is alone.
NOUNS = {
    "jobs": ("batch", "select", "wait", "logs", "bulk", "retry", "pause", "resume"),
    "events": ("timeline",),
    "logins": ("login-links", "logout"),
    "service": (
        *("status", "settings", "drain", "stop", "release", "clean"),
        "openapi.json",
    ),
}
HEAD = f"""\
# The HTTP interface

Made from the [OpenAPI document](../design/http.md#what-it-offers) of the service, which
answers with it at `/v1/openapi.json`. Who may ask, and within which limits, is told in
[its own page](../design/http.md). The examples ask over the socket of the home:

```console
$ curl -s --unix-socket {SOCKET} http://localhost/v1/status
```

With `[gateway] port = N` the same is answered on the loopback to who has the token:

```console
$ sed 's/^/Authorization: Bearer /' {Path(SOCKET).parent}/api-token | \\
    curl -s -H @- http://127.0.0.1:N/v1/status
```
"""
PROBLEMS = """\
An error is `application/problem+json` ([Problem](http-types.md#problem)): its `type` is
`urn:forge-actors:problem:CODE`, with one of these codes.
"""
TYPES = """\
# Types of the HTTP interface

What bodies and answers are made of. What has a default may be left out of a body.
"""


def pages() -> Iterator[tuple[str, str]]:
    """The pages: an overview, one a noun, and the types that they refer to."""
    told = document(ROUTES)
    yield "reference/http.md", _overview(told)
    for noun, paths in nouns(told).items():
        yield f"reference/http-{noun}.md", _noun(noun, paths)
    yield "reference/http-types.md", _types(told["components"]["schemas"])


def nouns(told: Json) -> dict[str, Json]:
    """The paths of each noun; none is left out."""
    of = {word: noun for noun, words in NOUNS.items() for word in words}
    found: dict[str, Json] = {}
    for path, operations in told["paths"].items():
        word = path.split("/")[2]
        found.setdefault(of.get(word, word), {})[path] = operations
    return dict(sorted(found.items()))


# -- the overview ------------------------------------------------------------------


def _overview(told: Json) -> str:
    divided = nouns(told)
    lines = [HEAD, "```{toctree}", ":hidden:"]
    lines += [*(f"http-{noun}" for noun in divided), "http-types", "```"]
    for noun, paths in divided.items():
        lines += ["", f"## {noun.capitalize()}", "", *_rows(noun, paths)]
    lines += ["", "## Problems", "", PROBLEMS, "| status | code | |", "|---|---|---|"]
    lines += [
        f"| {status} | `{code}` | {_cell(says)} |"
        for status, code, says in sorted(problems())
    ]
    return "\n".join(lines) + "\n"


def _rows(noun: str, paths: Json) -> Iterator[str]:
    yield "| route | |"
    yield "|---|---|"
    for path, operations in paths.items():
        for method, operation in operations.items():
            title = _title(method, path)
            link = f"http-{noun}.md#{operation['operationId'].replace('_', '-')}"
            yield f"| [{title}]({link}) | {_cell(operation['summary'])} |"


def _title(method: str, path: str) -> str:
    return f"`{method.upper()} {path}`"


def problems() -> set[tuple[int, str, str]]:
    """Status, code and meaning of each error, by the classes and calls there are."""
    for module in pkgutil.walk_packages(
        forge_actors.domain.__path__, "forge_actors.domain."
    ):
        importlib.import_module(module.name)
    found = {(status, code, _phrase(status)) for status, code in CODES.items()}
    for file in Path(*forge_actors.edges.gateway.__path__).rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name("error_response"),
                    args=[ast.Constant(int(status)), ast.Constant(str(code)), *_],
                ):
                    found.add((status, code, _phrase(status)))
                case _:
                    pass
    known = {code for _, code, _ in found}
    for error in _children(ForgeError):
        ours = error.__module__.startswith("forge_actors.domain.")
        if ours and "code" in vars(error) and error.code not in known:
            says = (error.__doc__ or "").split("\n\n")[0]
            found.add((error.http_status, error.code, " ".join(says.split())))
    return found


def _phrase(status: int) -> str:
    return f"{HTTPStatus(status).phrase}."


def _children(error: type[ForgeError]) -> Iterator[type[ForgeError]]:
    for child in error.__subclasses__():
        yield child
        yield from _children(child)


# -- a noun ------------------------------------------------------------------------


def _noun(noun: str, paths: Json) -> str:
    example = EXAMPLES[noun]
    lines = [
        *(f"# HTTP: {noun}", "", f"{example.says}:", ""),
        *("```console", f"$ {example.command}", example.answer, "```", ""),
        *_rows(noun, paths),
    ]
    for path, operations in paths.items():
        for method, operation in operations.items():
            name = operation["operationId"].replace("_", "-")
            lines += ["", f"({name})=", f"## {_title(method, path)}", ""]
            lines += _operation(operation)
    return "\n".join(lines) + "\n"


def _operation(operation: Json) -> Iterator[str]:
    yield operation["summary"]
    if operation["parameters"]:
        yield from ("", "| parameter | in | | |", "|---|---|---|---|")
    for one in operation["parameters"]:
        cells = (one["in"], _kind(one["schema"]), _cell(one.get("description", "")))
        yield f"| `{one['name']}` | {' | '.join(cells)} |"
    yield ""
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"- Body: {_content(media, content)}"
    wrong = []
    for status, answer in operation["responses"].items():
        if status >= "400":
            if int(status) not in COMMON:
                wrong.append(f"{status} ({answer['description'].rstrip('.')})")
            continue
        for media, content in answer.get("content", {}).items():
            yield f"- {status}: {_content(media, content)}"
        if "content" not in answer:
            yield f"- {status}: {answer['description']}"
    if wrong:
        yield f"- [Problems](http.md#problems) of its own: {'; '.join(wrong)}"


def _content(media: str, content: Json) -> str:
    if "itemSchema" in content:
        return f"{_kind(content['itemSchema'])} a line, `{media}`"
    return f"{_kind(content['schema'])}, `{media}`"


# -- types -------------------------------------------------------------------------


def _types(schemas: Json) -> str:
    lines = [TYPES]
    for name, schema in sorted(schemas.items()):
        lines += ["", f"## {name}", ""]
        if told := schema.get("description"):
            lines += [" ".join(told.split()), ""]
        fields = schema.get("properties", {})
        if fields:
            lines += ["| field | | default |", "|---|---|---|"]
        needed = schema.get("required", ())
        for field, kind in fields.items():
            lines.append(
                f"| `{field}` | {_kind(kind)} | {_default(kind, field in needed)} |"
            )
    return "\n".join(lines) + "\n"


def _default(kind: Json, needed: bool) -> str:
    if needed:
        return "(needed)"
    value = kind.get("default")
    return "none" if value in (None, "", [], {}) else f"`{json.dumps(value)}`"


def _kind(schema: Json) -> str:
    """A schema in a few words, with links to the types it names."""
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return f"[{name}](http-types.md#{name.lower()})"
    for several in ("anyOf", "oneOf"):
        if several in schema:
            kinds = [each for each in schema[several] if each.get("type") != "null"]
            return " or ".join(map(_kind, kinds))
    if "enum" in schema:
        return ", ".join(f"`{each}`" for each in schema["enum"])
    match schema:
        case {"type": "array", "items": dict(items)}:
            return f"list of {_kind(items)}"
        case {"type": "object", "additionalProperties": dict(values)}:
            return f"table of {_kind(values)}"
        case {"format": "binary"}:
            return "bytes"
        case _:
            return str(schema.get("type", "anything"))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
