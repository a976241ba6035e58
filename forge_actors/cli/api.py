"""`api`: the HTTP interface of a service, as it describes itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from forge_actors.cli.text import clean, table, terminal_width
from forge_actors.cli.verb import print_json
from forge_actors.client.sync import Service
from forge_actors.domain.errors import NotFound

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    Json = dict[str, Any]

HELP = (
    "List what the service answers over HTTP, or describe the paths that begin with\n"
    "PATH. --json prints the OpenAPI 3.1 document, or the part of it that they need."
)
EXAMPLES = """\
  forge-actors api
  forge-actors api /v1/jobs/{job}/wait
  forge-actors api --json > openapi.json
"""
HEAD = ("METHOD", "PATH", "WHAT IT DOES")
#: What stands before every path.
ROOT = "v1"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "path", nargs="?", metavar="PATH", help="such as /v1/jobs, or jobs"
    )


def run(args: argparse.Namespace) -> int:
    document: Json = Service(args.home).get("openapi.json")
    paths: Json = document["paths"]
    if args.path is not None:
        paths = _below(paths, args.path)
        document = _part(document, paths)
    if args.json:
        print_json(document)
    elif args.path is not None:
        print("\n".join(map(clean, _described(document))))
    else:
        rows = [
            (method.upper(), path, operation["summary"])
            for path, operations in paths.items()
            for method, operation in operations.items()
        ]
        print("\n".join(table(HEAD, rows, columns=terminal_width(), flexible=[2])))
    return 0


def _below(paths: Json, wanted: str) -> Json:
    """The paths that begin with the wanted one, part by part."""
    parts = [part for part in wanted.split("/") if part]
    if parts[:1] == [ROOT]:
        parts = parts[1:]
    found = {
        path: operations
        for path, operations in paths.items()
        if path.strip("/").split("/")[1 : 1 + len(parts)] == parts
    }
    if not found:
        raise NotFound(f"nothing is answered at {wanted}; forge-actors api lists all")
    return found


def _part(document: Json, paths: Json) -> Json:
    """The same document with these paths only, and what they refer to."""
    schemas: Json = document["components"]["schemas"]
    names: dict[str, None] = {}
    wanted = list(_references(paths))
    while wanted:
        name = wanted.pop()
        if name not in names:
            names[name] = None
            wanted += _references(schemas[name])
    kept = {name: schema for name, schema in schemas.items() if name in names}
    components = {**document["components"], "schemas": kept}
    return {**document, "paths": paths, "components": components}


def _references(value: object) -> Iterator[str]:
    """The names of the schemas that a part of the document refers to."""
    if isinstance(value, dict):
        for key, each in value.items():
            if key == "$ref" and isinstance(each, str):
                yield each.rpartition("/")[2]
            else:
                yield from _references(each)
    elif isinstance(value, list):
        for each in value:
            yield from _references(each)


def _described(document: Json) -> Iterator[str]:
    """Each operation with what it takes and answers, and the types of that."""
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            yield f"{method.upper()} {path}"
            yield from _operation(operation)
            yield ""
    for name, schema in document["components"]["schemas"].items():
        yield name
        if told := schema.get("description"):
            yield f"    {' '.join(told.split())}"
        required = schema.get("required", ())
        for field, kind in schema.get("properties", {}).items():
            mark = "" if field in required else "?"
            yield f"    {field}{mark}: {_kind(kind)}"
        yield ""


def _operation(operation: Json) -> Iterator[str]:
    yield f"    {operation['summary']}"
    for one in operation["parameters"]:
        told = one.get("description") or "as in the path"
        yield f"    {one['in']:<6}  {one['name']}: {_kind(one['schema'])}  {told}"
    taken: Json = operation.get("requestBody", {}).get("content", {})
    for media, content in taken.items():
        yield f"    takes   {_body(content)}  ({media})"
    answers: Json = operation["responses"]
    for status, answer in answers.items():
        for media, content in answer.get("content", {}).items():
            if status < "400":
                yield f"    {status}     {_body(content)}  ({media})"
    errors = [status for status in answers if status >= "400"]
    yield f"    errors  {' '.join(errors)}"


def _body(content: Json) -> str:
    schema = content["schema"] or content.get("itemSchema", {})
    return _kind(schema)


def _kind(schema: Json) -> str:
    """A schema in a few words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            return " or ".join(_kind(each) for each in schema[several])
    if "enum" in schema:
        return " | ".join(str(each) for each in schema["enum"])
    if "const" in schema:
        return str(schema["const"])
    kind = schema.get("type", "anything")
    if kind == "array":
        items = schema.get("items", {})
        return f"list of {_kind(items) if isinstance(items, dict) else 'anything'}"
    if kind == "object" and isinstance(
        more := schema.get("additionalProperties"), dict
    ):
        return f"table of {_kind(more)}"
    return str(kind)
