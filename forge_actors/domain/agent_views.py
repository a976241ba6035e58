"""A job's agent as readers see it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.agents import LimitKind, Usage
from forge_actors.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.agents import AgentReport


class AgentView(Struct, frozen=True, omit_defaults=True):
    """What its last attempt told, once that is over.

    `until` is RFC 3339. Of `usage`, what is not there is unknown.
    """

    name: str
    session: str | None = None
    #: It resumed that session; it began anew in place of one that is gone.
    resumed: bool = False
    anew: bool = False
    #: The job that it goes on with.
    continues: str | None = None
    version: str | None = None
    ok: bool | None = None
    text: str = ""
    usage: Usage | None = None
    limit: LimitKind | None = None
    until: str | None = None
    question: str | None = None


def agent_view(
    name: str,
    told: AgentReport | None,
    moment: Callable[[float], str | None],
    continues: str | None = None,
) -> AgentView:
    """The view, without secrets; `moment` writes a time as readers see it."""
    if told is None:
        return AgentView(name, continues=continues)
    limit, question = told.limit, told.question
    reset = None if limit is None else limit.retry_at
    return AgentView(
        name,
        session=told.session,
        resumed=told.resumed,
        anew=told.anew,
        continues=continues,
        version=told.version,
        ok=told.ok,
        text=redact(told.text),
        usage=told.usage,
        limit=None if limit is None else limit.kind,
        until=None if reset is None else moment(reset),
        question=None if question is None else redact(question),
    )
