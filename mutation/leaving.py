"""Which mutants are left out, by principle, and why; read `WHY` as a list of them.

Docstrings, annotations, decorators, tables and defaults of a module or a class, and
functions that carry a decorator other than classmethod and staticmethod are left out
by mutmut itself.
"""

from __future__ import annotations

import ast
import re

from mutation.mutants import Mutant

WHY = {
    "words": "what a text or a log for people says, or how markup is spelled",
    "types": "what only the type checker reads: the type that `cast` is given",
    "checks": "an `assert` or a `strict=True` that never fails while the code is right",
    "protocols": "a default in a signature of a Protocol, which nobody calls",
    "codecs": "the case of the name of a codec, which has none",
}
#: Two words with a blank between them, or a tag.
_WORDS = re.compile(r"\S +\S|</?\w")
_NAMED = re.compile(r"^\w+=")
_CODECS = {"utf-8", "ascii", "latin-1"}


def left_out(mutant: Mutant) -> str | None:
    """The key of the principle in `WHY` by which this one is not tried, or None."""
    if "Assert" in mutant.within or mutant.argument.replace(" ", "") == "strict=True":
        return "checks"
    if mutant.was == "True" and mutant.within[-1:] == ("strict=",):
        return "checks"
    if "stub" in mutant.within:
        return "protocols"
    given = mutant.within[-2:] == ("cast()", "Arg") and mutant.was[:1] in "\"'"
    if mutant.was.startswith("cast(") or given:
        return "types"
    if is_text(mutant.argument) or mutant.was.startswith("log."):
        return "words"
    text = _text(mutant.was)
    if text is None:
        return None
    if is_text(mutant.was) or not {"Raise", "words"}.isdisjoint(mutant.within):
        return "words"
    return "codecs" if text.lower() in _CODECS and "XX" not in mutant.now else None


def is_text(code: str) -> bool:
    """Whether it is a literal, or several in a row, with words or markup in it."""
    text = _text(code)
    return text is not None and _WORDS.search(text) is not None


def _text(code: str) -> str | None:
    """What a literal says, with `x` for a value in it; None of what is no literal."""
    try:
        literal = ast.parse(f"({_NAMED.sub('', code)})", mode="eval").body
    except SyntaxError:  # an operator, or a statement
        return None
    if isinstance(literal, ast.JoinedStr):
        parts = [
            part.value if isinstance(part, ast.Constant) else "x"
            for part in literal.values
        ]
        return "".join(str(part) for part in parts)
    if isinstance(literal, ast.Constant) and isinstance(literal.value, str):
        return literal.value
    return None
