"""How a job reads in a table, a line or a page. Works on the JSON of a job."""

from __future__ import annotations

import shlex
from typing import Any

from forge_actors.cli.artifact_text import file_lines, left_out_lines, summary
from forge_actors.cli.result_text import result_lines
from forge_actors.cli.text import clean, clean_lines

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


def job_page(job: Json) -> list[str]:
    """Everything about a job; its agent's answer and its error are last, on as many
    lines as they have."""
    shown: dict[str, object] = {**job, "command": command(job)}
    # The command stands for its arguments, and the error gets lines of its own.
    for name in ("argv", "error"):
        del shown[name]
    if job.get("agent"):
        shown["agent"] = {**job["agent"], "text": ""}
    artifacts = shown.get("artifacts")
    if isinstance(artifacts, dict):
        shown["artifacts"] = summary(artifacts)
    shown.pop("result", None)
    lines = page(shown)
    answer = (job.get("agent") or {}).get("text")
    if answer:
        lines += ["", clean_lines(answer), ""]
    if job["error"]:
        code, message = job["error"]["code"], clean_lines(job["error"]["message"])
        size = max(len(name) for name, value in shown.items() if _says_something(value))
        lines.append(f"{'error':<{size}}  {code}: {message}")
    if isinstance(artifacts, dict):
        lines += [f"  {line}" for line in file_lines(artifacts)]
        lines += [f"  left out: {line}" for line in left_out_lines(artifacts)]
    if job.get("result"):
        lines += ["", *result_lines(job["result"])]
    return lines


def page(values: dict[str, object]) -> list[str]:
    """Values as lines of `name value`; those that say nothing are left out."""
    shown = {name: value for name, value in values.items() if _says_something(value)}
    size = max(map(len, shown))
    return [f"{name:<{size}}  {clean(_text(value))}" for name, value in shown.items()]


def _says_something(value: object) -> bool:
    # An exit code of 0 does.
    return bool(value) or (value == 0 and value is not False)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    if isinstance(value, dict):
        pairs = (
            f"{key} {_text(inner)}"
            for key, inner in value.items()
            if _says_something(inner)
        )
        return ", ".join(pairs)
    return str(value)
