"""The mutants of a module, as mutmut makes them, with the place of each."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider
from mutmut.mutation.data import SourceFileMutationData
from mutmut.mutation.file_mutation import create_mutations

from mutation import PLACE, Wrong
from mutation.leaving import is_text
from mutation.mutants import Mutant


def mutants_of(path: str) -> list[Mutant]:
    """All that mutmut has made of a module; read again only if the module changed."""
    code = Path(path).read_text("utf-8")
    # What is told of a mutant changes with this module as well.
    both = code + Path(__file__).read_text("utf-8")
    digest = hashlib.sha256(both.encode()).hexdigest()
    kept = PLACE / f"{path}.listed"
    if kept.exists():
        known = json.loads(kept.read_text("utf-8"))
        if known["digest"] == digest:
            return [
                Mutant(**{**one, "within": tuple(one["within"])})
                for one in known["mutants"]
            ]
    found = _found(path, code)
    document = {"digest": digest, "mutants": [asdict(one) for one in found]}
    kept.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return found


def _found(path: str, code: str) -> list[Mutant]:
    made = SourceFileMutationData(path=Path(path))
    made.load()
    module, mutations, _, _ = create_mutations(path, code)
    whole = MetadataWrapper(module, unsafe_skip_copy=True)
    positions = whole.resolve(PositionProvider)
    parents = whole.resolve(ParentNodeProvider)
    functions: dict[Any, list[Any]] = {}
    for mutation in mutations:
        function = mutation.contained_by_top_level_function
        if isinstance(function, cst.FunctionDef):
            functions.setdefault(function, []).append(mutation)
    ordered = [mutation for each in functions.values() for mutation in each]
    names = list(made.exit_code_by_key)
    if len(names) != len(ordered):
        raise Wrong(f"{path}: mutmut made {len(names)} mutants, of {len(ordered)}")
    return [
        Mutant(
            name=name,
            path=path,
            line=positions[mutation.original_node].start.line,
            was=module.code_for_node(mutation.original_node).strip(),
            now=module.code_for_node(mutation.mutated_node).strip(),
            argument=_argument(module, mutation),
            within=_around(module, parents, mutation.original_node),
        )
        for name, mutation in zip(names, ordered, strict=True)
    ]


def _argument(module: cst.Module, mutation: Any) -> str:
    was, now = mutation.original_node, mutation.mutated_node
    if not isinstance(was, cst.Call) or not isinstance(now, cst.Call):
        return ""
    for number, argument in enumerate(was.args):
        if number >= len(now.args) or now.args[number] is not argument:
            name = argument.keyword
            code = module.code_for_node(argument.value).strip()
            return code if name is None else f"{name.value}={code}"
    return ""


def _around(module: cst.Module, parents: Any, node: cst.CSTNode) -> tuple[str, ...]:
    found = []
    while (node := parents.get(node)) is not None:
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            if isinstance(node, cst.FunctionDef) and _is_stub(node):
                found.append("stub")
            break
        if isinstance(node, cst.Arg) and node.keyword is not None:
            found.append(f"{node.keyword.value}=")
        elif isinstance(node, cst.ConcatenatedString | cst.FormattedString):
            if is_text(module.code_for_node(node)):
                found.append("words")
        elif isinstance(node, cst.Call) and isinstance(node.func, cst.Name):
            found.append(f"{node.func.value}()")
        else:
            found.append(type(node).__name__)
    return tuple(reversed(found))


def _is_stub(function: cst.FunctionDef) -> bool:
    """Whether it has nothing but a docstring, or an ellipsis."""
    return all(
        isinstance(statement, cst.SimpleStatementLine)
        and all(
            isinstance(part, cst.Expr)
            and isinstance(part.value, cst.BaseString | cst.Ellipsis)
            for part in statement.body
        )
        for statement in function.body.body
    )
