"""Mending: what an agent is asked when the check of its work has failed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.edges.node import logs
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from forge_actors.domain.verifying import Verify
    from forge_actors.edges.node.logs import Stream

MEND = """\
What you did is checked by this command, in the folder where you work:

{command}

It did not pass: {failed}. Find out why, and mend your work so that it does. Change
neither the command nor what it checks in order to get it through. It is run again when
you are done. This is round {round} of {rounds}.
{printed}"""
#: What it printed, by stream.
PRINTED = """
The end of what it printed ({stream}):
{text}
"""
#: Bytes of the end of each stream.
TOLD = 16 * 1024


def asked_to_mend(home: str, job: str, verify: Verify) -> str:
    """The words, by the log of the check that failed."""
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    printed = ""
    for stream in streams:
        text = _end_of(log_base(home, job, verify.entered), stream)
        if text:
            printed += PRINTED.format(stream=stream, text=text)
    return MEND.format(
        command=_indented(verify.command),
        failed=verify.failed,
        round=verify.round,
        rounds=verify.rounds,
        printed=printed or "\nIt printed nothing.\n",
    )


def _end_of(log: str, stream: Stream) -> str:
    try:
        data = logs.read(log, stream, -TOLD, TOLD).data
    except OSError:
        return ""  # it is not kept any more
    return data.decode("utf-8", "replace").strip()


def _indented(command: str) -> str:
    return "\n".join(f"    {line}" for line in command.splitlines())
