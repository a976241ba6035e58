"""The reference: what follows from the code, so that it cannot differ from it."""

from __future__ import annotations

import argparse
import ast
import importlib
import inspect
import os
import re
import textwrap
from typing import TYPE_CHECKING, Any

import msgspec

from docs.making.sources import ROOT
from forge_actors.cli.main import GROUPS, VERBS, _load
from forge_actors.cli.verb import make_parser
from forge_actors.domain.events import KINDS
from forge_actors.domain.jobs import STATES
from forge_actors.runtime.settings import LIVE, Settings
from forge_actors.runtime.sources import _VARIABLES

if TYPE_CHECKING:
    from collections.abc import Iterator

#: The modules whose `__all__` is public.
PUBLIC = (
    "forge_actors",
    "forge_actors.kit",
    "forge_actors.adapters",
    "forge_actors.client",
    "forge_actors.testing",
)
#: Columns of the help on a page.
COLUMNS = "88"
#: How the pages begin.
COMMANDS = """\
`forge-actors VERB [options]`; what the verbs mean in detail is in [its own
page](../design/command-line.md). Every verb has `--json` and `--home`.
"""
SETTINGS = """\
The tables of `settings.toml` in the home. `forge-actors settings show` says
what is in force and where it comes from. A table that is *live* holds at once
after `settings reload`; the others are taken over by the next start.
"""
EVENTS = """\
What each carries in its `data`; [how to read them](../design/events.md) is told
elsewhere.
"""
API = """\
Every public name; those that are not here may change at any time. What they are
for is told in [the API for programs](../design/api.md).
"""


def pages() -> Iterator[tuple[str, str]]:
    """Every page of the reference: its place on the site, and its text."""
    yield "reference/commands.md", _commands()
    for title, verbs in groups().items():
        yield f"reference/{_slug(title)}.md", _verbs(title, verbs)
    yield "reference/settings.md", _settings()
    yield "reference/events.md", _events()
    yield "reference/api.md", _api()


def groups() -> dict[str, tuple[str, ...]]:
    """The verbs as `--help` divides them; none is left out."""
    named = {verb for verbs in GROUPS.values() for verb in verbs}
    rest = tuple(verb for verb in VERBS if verb not in named)
    return {**GROUPS, **({"others": rest} if rest else {})}


def _slug(title: str) -> str:
    return "commands-" + title.replace(" ", "-")


# -- the command line --------------------------------------------------------------


def _commands() -> str:
    lines = [
        "# The command line",
        "",
        COMMANDS,
        "",
        "```{toctree}",
        ":hidden:",
        *(_slug(title) for title in groups()),
        "```",
    ]
    for title, verbs in groups().items():
        lines += [
            "",
            f"## {title[0].upper()}{title[1:]}",
            "",
            "| verb | |",
            "|---|---|",
        ]
        lines += [
            f"| [`{verb}`]({_slug(title)}.md#{verb}) | {VERBS[verb]} |"
            for verb in verbs
        ]
    return "\n".join(lines) + "\n"


def _verbs(title: str, verbs: tuple[str, ...]) -> str:
    lines = [f"# Commands: {title}"]
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = COLUMNS
    try:
        for verb in verbs:
            lines += ["", f"## {verb}", ""]
            for parser in _parsers(make_parser(verb, _load(verb))):
                lines += ["```text", parser.format_help().rstrip(), "```", ""]
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
    return "\n".join(lines)


def _parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from _parsers(each)


# -- settings ----------------------------------------------------------------------


def _settings() -> str:
    lines = [
        "# Settings",
        "",
        SETTINGS,
    ]
    for field in msgspec.structs.fields(Settings):
        lines += _section(field.name, field.type, _told(Settings).get(field.name, ""))
    return "\n".join(lines) + "\n"


def _section(name: str, kind: Any, told: str) -> Iterator[str]:
    live = name.split(".")[0] in LIVE
    struct, header = _table_of(name, kind)
    yield from ("", f"## {header}", "")
    doc = inspect.getdoc(struct) or ""
    own = "" if doc.startswith(f"{struct.__name__}(") else doc
    yield " ".join([*filter(None, (own, told)), "*Live.*" if live else ""]).strip()
    yield from ("", "| setting | default | |", "|---|---|---|")
    nested = []
    notes = _told(struct)
    for field in msgspec.structs.fields(struct):
        if _is_struct(field.type):
            nested.append(field)
            continue
        variable = next(
            (
                variable
                for variable, (path, _) in _VARIABLES.items()
                if path == (name, field.name)
            ),
            None,
        )
        note = notes.get(field.name, "")
        if variable:
            note = f"{note} Or `{variable}`.".strip()
        yield f"| `{field.encode_name}` | {_default(field)} | {_cell(note)} |"
    for field in nested:
        yield from _section(
            f"{name}.{field.name}", field.type, notes.get(field.name, "")
        )


def _table_of(name: str, kind: Any) -> tuple[type[msgspec.Struct], str]:
    """The struct of a table, and how its header is written."""
    if _is_struct(kind):
        return kind, f"`[{name}]`"
    struct = next(each for each in kind.__args__ if _is_struct(each))
    many = kind.__origin__ is tuple
    return struct, f"`[[{name}]]`" if many else f"`[{name}.NAME]`"


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _default(field: Any) -> str:
    if field.default is not msgspec.NODEFAULT:
        value = field.default
    elif field.default_factory is not msgspec.NODEFAULT:
        value = field.default_factory()
    else:
        return "(needed)"
    if value is None:
        return "none"
    return f"`{msgspec.json.encode(value).decode()}`"


def _told(struct: type[Any]) -> dict[str, str]:
    """What the comments `#:` above the fields of a class say."""
    text = textwrap.dedent(inspect.getsource(struct))
    lines = text.splitlines()
    told = {}
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
            continue
        place, words = node.lineno - 2, []
        while lines[place].strip().startswith("#:"):
            words.append(lines[place].strip().removeprefix("#:").strip())
            place -= 1
        told[node.target.id] = " ".join(reversed(words))
    return told


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# -- events ------------------------------------------------------------------------


def _events() -> str:
    rows = event_rows((ROOT / "design/events.md").read_text("utf-8"))
    lines = [
        "# Kinds of events",
        "",
        EVENTS,
        "",
        "| kind | data |",
        "|---|---|",
    ]
    for kind in sorted(KINDS):
        text = rows.get(kind) or rows["job_STATE"]
        text = re.sub(r"\]\((\w)", r"](../design/\1", text)
        lines.append(f"| `{kind}` | {text} |")
    return "\n".join(lines) + "\n"


def event_rows(text: str) -> dict[str, str]:
    """By kind what its row of `design/events.md` says.

    The first kind of a row is whole, the others may be the last part of theirs; all
    states of a job share the rows of `job_STATE`, which are joined here.

    Raises:
        ValueError: a row tells of a kind that there is not, or one kind has none.
    """
    found: dict[str, str] = {}
    joined: list[str] = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ", 1)]
        names = re.findall(r"`(\w+)`", cells[0])
        if not line.startswith("| ") or len(cells) != 2 or not names:
            continue
        if names == ["job_STATE"]:
            words = cells[0].replace("`job_STATE`", "").strip(" ,")
            joined.append(f"{words}: {cells[1]}" if words else cells[1])
            continue
        found |= {_whole(name, names[0]): cells[1] for name in names}
    found["job_STATE"] = "; ".join(joined)
    of_states = {f"job_{state}" for state in STATES}
    unknown = found.keys() - set(KINDS) - {"job_STATE"}
    missing = set(KINDS) - found.keys() - of_states
    if unknown or missing or not joined:
        raise ValueError(f"design/events.md: {sorted(unknown)} no kinds, {missing}")
    return found


def _whole(name: str, first: str) -> str:
    """`_removed` behind `schedule_added` is `schedule_removed`."""
    if not name.startswith("_"):
        return name
    stems = [first[: place.start()] for place in re.finditer("_", first)]
    return next(stem + name for stem in stems if stem + name in KINDS)


# -- the public names --------------------------------------------------------------


def _api() -> str:
    lines = [
        "# The Python interface",
        "",
        API,
        "",
    ]
    for name in PUBLIC:
        module = importlib.import_module(name)
        lines += [f"## {name}", "", "```{eval-rst}"]
        for each in getattr(module, "__all__", ()):
            lines += _directive(name, each, getattr(module, each))
        lines += ["```", ""]
    return "\n".join(lines)


def _directive(module: str, name: str, value: object) -> list[str]:
    if isinstance(value, int | str):
        return [f".. py:data:: {module}.{name}", f"   :value: {value!r}", ""]
    kind = "autodata"
    if isinstance(value, type):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
    elif callable(value):
        kind = "autofunction"
    members = ["   :members:"] if kind == "autoclass" else []
    return [f".. {kind}:: {module}.{name}", *members, ""]
