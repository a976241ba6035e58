"""Artifacts of jobs as they are kept in a home, made without a job."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def keep(home: Path, job: str, files: dict[str, bytes], *, attempt: int = 1) -> Path:
    """Keep these files of an attempt; the folder that they are in."""
    folder = home / "artifacts" / job / str(attempt)
    folder.mkdir(parents=True)
    told = []
    for number, (path, content) in enumerate(files.items(), start=1):
        (folder / str(number)).write_bytes(content)
        told.append(
            {
                "path": path,
                "bytes": len(content),
                "sha256": hashlib.sha256(content).hexdigest(),
                "executable": path.endswith(".sh"),
                "name": str(number),
            }
        )
    (folder / "manifest.json").write_text(json.dumps({"version": 1, "files": told}))
    return folder
