"""What came of each mutant, kept while the module it is in stays as it is."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from mutation import PLACE
from mutation.mutants import Mutant


class Verdicts:
    """A line each, added at once: a run that is broken off goes on from there."""

    def __init__(self, file: Path = PLACE / "verdicts.jsonl") -> None:
        self._file = file
        self._known: dict[tuple[str, str], dict[str, Any]] = {}
        self._digests: dict[str, str] = {}
        if file.exists():
            for line in file.read_text("utf-8").splitlines():
                one = json.loads(line)
                self._known[one["mutant"], one["digest"]] = one

    def add(self, mutant: Mutant, verdict: str, seconds: float) -> None:
        digest = self._digest(mutant.path)
        one = {
            "mutant": mutant.name,
            "digest": digest,
            "verdict": verdict,
            "seconds": round(seconds, 2),
        }
        self._known[mutant.name, digest] = one
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(one, ensure_ascii=False)}\n")

    def of(self, mutant: Mutant) -> str | None:
        known = self._known.get((mutant.name, self._digest(mutant.path)))
        return None if known is None else str(known["verdict"])

    def _digest(self, path: str) -> str:
        if path not in self._digests:
            code = Path(path).read_bytes()
            self._digests[path] = hashlib.sha256(code).hexdigest()[:16]
        return self._digests[path]
