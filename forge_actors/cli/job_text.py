"""How a job reads in a table, a line or a page. Works on the JSON of a job."""

from __future__ import annotations

import shlex
from typing import Any

#: The tail of an id that lists print; selectors accept it.
TAIL = 6

Json = dict[str, Any]


def command(job: Json) -> str:
    """The command as one would type it."""
    return shlex.join(_argument(part) for part in job["argv"])


def _argument(part: str | dict[str, str]) -> str:
    if isinstance(part, str):
        return part
    # Rare, and the import is not free.
    import base64

    return base64.b64decode(part["b64"]).decode("utf-8", "backslashreplace")


def title(job: Json) -> str:
    return job.get("name") or command(job)


def reason(job: Json) -> str:
    """Why the job is not running, or how it ended, in a few words."""
    if job["error"]:
        return str(job["error"]["code"])
    if job.get("paused"):
        return "paused"
    waiting = job["waiting"]
    if not waiting:
        return ""
    holders = [str(holder)[-TAIL:] for holder in waiting.get("holders") or []]
    shown = ", ".join(holders[:3]) + (", …" if len(holders) > 3 else "")
    return f"{waiting['kind']} ({shown})" if shown else str(waiting["kind"])


def outcome(job: Json) -> str:
    """The end of a job in a line."""
    text = f"{job['id']} {job['state']}"
    if job["exit_code"] is not None:
        text += f", exit code {job['exit_code']}"
    if job["signal"]:
        text += f", {job['signal']}"
    if job["error"] and job["error"]["code"] not in ("EXIT_NONZERO", "SIGNALLED"):
        text += f", {job['error']['code']}: {job['error']['message']}"
    return text
