"""What the agent of a goal is asked in the rounds after the first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.harmless import clean_lines
from forge_actors.domain.redaction import redact
from forge_actors.runtime.checks import end_of

if TYPE_CHECKING:
    from forge_actors.domain.requests import JobRequest
    from forge_actors.domain.rounds import Turn
    from forge_actors.edges.node.logs import Stream

CHECKED = """\
Your work is checked, in the folder where you work, and it did not pass: {why}. Find out
why, and mend your work so that it does. Do not change what checks it in order to get it
through. It is checked again when you are done. This is round {round} of {rounds}.

{feedback}"""
FAILED = """\
Your last try did not end well: {why}. Look at what is done already, and go on with what
you were asked to do. This is round {round} of {rounds}.

{prompt}
"""
#: What is asked where no session knows of the rounds before.
ANEW = """\
{prompt}

(This was worked on before, in the same folder, so look first at what is done already.)

{more}"""
#: What a check printed, by stream.
PRINTED = """\
The end of what the check printed ({stream}):
{text}
"""
NOTHING = "The check printed nothing.\n"
#: Bytes of the end of each stream.
TOLD = 16 * 1024


def feedback_of(log: str) -> str:
    """The end of what a check has printed, harmless and without secrets."""
    streams: tuple[Stream, ...] = ("stdout", "stderr")
    told = []
    for stream in streams:
        text = end_of(log, stream, TOLD).decode("utf-8", "replace")
        text = clean_lines(redact(text)).strip()
        if text:
            told.append(PRINTED.format(stream=stream, text=text))
    return "\n".join(told) or NOTHING


def prompt_of(request: JobRequest, turn: Turn, feedback: str | None) -> str:
    """What the agent is asked in this turn, where its session knows those before."""
    prompt = request.prompt or ""
    if feedback is None:
        if turn.why is None:
            return prompt
        form, more = FAILED, {"prompt": prompt}
    else:
        form, more = CHECKED, {"feedback": feedback}
    why = redact(turn.why or "")
    return form.format(why=why, round=turn.round, rounds=turn.rounds, **more)


def prompt_anew(request: JobRequest, turn: Turn, feedback: str | None) -> str:
    """The same where no session knows them."""
    more = prompt_of(request, turn, feedback)
    if feedback is None:
        return more
    return ANEW.format(prompt=(request.prompt or "").rstrip(), more=more)
