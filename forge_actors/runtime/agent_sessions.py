"""Sessions: whether an attempt of an agent begins one or goes on with one.

There is one decision for every reason to start an agent again: an interruption, a
limit, a follow-up. It goes by what is saved, what the attempts before have printed and
what the program has kept, so it is the same after a crash.
"""

from __future__ import annotations

import hashlib
import uuid
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from msgspec import structs

from forge_actors.domain.agents import AgentRun, shortened
from forge_actors.domain.answers import ASKED_BACK
from forge_actors.edges.agents.output import AgentOutput
from forge_actors.edges.node import logs
from forge_actors.runtime.mending import asked_to_mend
from forge_actors.runtime.orders import log_base

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from forge_actors.domain.agents import AgentAdapter
    from forge_actors.domain.jobs import AgentSpec
    from forge_actors.domain.verifying import Verify
    from forge_actors.runtime.prompts import PromptFolder

#: What a program is asked when it goes on with a session.
GO_ON = """\
You were interrupted while you worked on this. Look at what is done already, and go on
with what you were asked to do.
"""
#: What it is asked when the session is there, and a person wants another try.
TRY_AGAIN = """\
Your last try did not end well. Look at what is done already, and go on with what you
were asked to do:

{prompt}
"""
#: What it is asked when it cannot go on with the session.
ANEW = """\
{prompt}

(An earlier session worked on this in the same folder. It is gone, so look first at what
is done already.{said})
"""
#: The same for a follow-up.
FOLLOW_ANEW = """\
You go on with the work of an earlier session in this folder. That session is gone, so
look first at what is done already.

It was asked:
{asked}

It said in the end:
{said}

You are asked now:
{prompt}
"""
#: Characters of an earlier prompt that a summary repeats.
MAX_ASKED = 16 * 1024
#: Attempts before this one, and bytes of the beginning and the end of the output of
#: each, that are looked at for it.
LOOKED_BACK = 5
HEAD = 256 * 1024


class Start(NamedTuple):
    """How an attempt begins: its run, and the digest of what it is asked."""

    run: AgentRun
    prompt: str


class Told(NamedTuple):
    """What an attempt before has told of its session."""

    #: Those that it may have had, the surest first.
    sessions: tuple[str, ...]
    #: Its program said that it has no such session.
    gone: bool
    #: It had begun one.
    begun: bool
    #: The last words of its work.
    said: str


class Sessions:
    """Decides it, with the logs and the prompts of a home."""

    def __init__(self, home: str, prompts: PromptFolder) -> None:
        self._home = home
        self._prompts = prompts

    def start(
        self,
        of: AgentAdapter,
        spec: AgentSpec,
        env: Mapping[str, str],
        run: AgentRun,
        job: str,
        attempt: int,
        since: int = 0,
    ) -> Start:
        """How this attempt begins, `run` being what it is without a session.

        An attempt resumes the last session of its job that the program has kept, else
        the one that its job goes on with, each only if no program said that it is gone.
        Only the attempts after `since` are those of what it is asked now.

        Raises:
            InvalidInput, StoreFailed: what it is to be asked could not be saved.
        """
        run = structs.replace(run, session=session_of(job, attempt))
        last = None
        for told in self._attempts(of, job, attempt, since):
            last = told if last is None and (told.begun or told.gone) else last
            if told.gone:
                return self._anew(spec, run, last)
            for session in told.sessions:
                if of.keeps(session, env):
                    resumed = structs.replace(run, resume=session)
                    return Start(resumed, self._go_on(spec))
        if spec.session is not None:
            if of.keeps(spec.session, env):
                return Start(structs.replace(run, resume=spec.session), spec.prompt)
            return self._anew(spec, run, last)
        if last is not None:
            return self._anew(spec, run, last)
        return Start(run, spec.prompt)

    def found(
        self,
        of: AgentAdapter,
        env: Mapping[str, str],
        job: str,
        attempts: int,
        verify: Verify | None = None,
    ) -> str | None:
        """The session with which somebody could go on after that many attempts: the
        last that the program has kept, else the last that was begun."""
        begun = None
        for told in self._attempts(of, job, attempts + 1, verify=verify):
            for session in () if told.gone else told.sessions:
                if of.keeps(session, env):
                    return session
                begun = begun or (session if told.begun else None)
        return begun

    def to_mend(
        self,
        of: AgentAdapter,
        spec: AgentSpec,
        env: Mapping[str, str],
        job: str,
        verify: Verify,
    ) -> AgentSpec:
        """What the agent of a job is in a round of mending: it goes on with its own
        session, and is asked to mend what its check found."""
        session = self.found(of, env, job, verify.entered, verify) or spec.session
        asked = asked_to_mend(self._home, job, verify)
        said = "" if verify.work is None else verify.work.text
        anew = self.follow_up(asked, spec.prompt, said)
        prompt = anew
        if session is not None:
            prompt = self._prompts.keep(asked, field="prompt")
        return structs.replace(spec, prompt=prompt, session=session, anew=anew)

    def follow_up(self, prompt: str, asked: str, said: str) -> str:
        """The digest of what a follow-up is asked if its session is gone.

        `asked` is the digest of what the job before was asked, `said` what it said.
        """
        before = self._text(asked)
        if len(before) > MAX_ASKED:
            before = f"{before[:MAX_ASKED]}…"
        words = shortened(said).strip() or "(nothing)"
        text = FOLLOW_ANEW.format(asked=before.strip(), said=words, prompt=prompt)
        return self._prompts.keep(text, field="prompt")

    def another_try(self, asked: str, said: str) -> tuple[str, str]:
        """The digests of what another try is asked, with the session and without."""
        prompt = self._text(asked)
        text = TRY_AGAIN.format(prompt=prompt)
        return self._prompts.keep(text, field="prompt"), self._summary(prompt, said)

    def answered(self, start: Start, answer: str) -> Start:
        """The same with what a person answered as its input; `answer` is a digest."""
        if start.run.resume is not None:
            return start._replace(prompt=answer)
        text = f"{self._text(start.prompt)}\n\n{ASKED_BACK}\n\n{self._text(answer)}"
        return start._replace(prompt=self._prompts.keep(text, field="text"))

    def _go_on(self, spec: AgentSpec) -> str:
        if spec.session is None:
            return self._prompts.keep(GO_ON, field="prompt")
        # The session may not have come to know what this job was asked.
        text = f"{GO_ON}\n{self._text(spec.prompt)}"
        return self._prompts.keep(text, field="prompt")

    def _anew(self, spec: AgentSpec, run: AgentRun, last: Told | None) -> Start:
        run = structs.replace(run, anew=True)
        if spec.anew is not None:
            return Start(run, spec.anew)
        said = "" if last is None else last.said
        return Start(run, self._summary(self._text(spec.prompt), said))

    def _summary(self, prompt: str, said: str) -> str:
        told = f" It said last:\n{shortened(said).strip()}" if said.strip() else ""
        text = ANEW.format(prompt=prompt.rstrip(), said=told)
        return self._prompts.keep(text, field="prompt")

    def _text(self, digest: str) -> str:
        return self._prompts.read(digest)

    def _attempts(
        self,
        of: AgentAdapter,
        job: str,
        attempt: int,
        since: int = 0,
        verify: Verify | None = None,
    ) -> Iterator[Told]:
        """What the agent's attempts before this one have told, the last one first."""
        earlier = (
            each
            for each in range(attempt - 1, since, -1)
            if verify is None or not verify.is_check(each)
        )
        for each in islice(earlier, LOOKED_BACK):
            yield self._told(of, job, each)

    def _told(self, of: AgentAdapter, job: str, attempt: int) -> Told:
        chosen = session_of(job, attempt)
        run = AgentRun(of.name, session=chosen, resume=chosen)
        reader = of.reader(run, now=0.0, zone=None, before=None)
        output = AgentOutput(of.name, reader, None)
        base = log_base(self._home, job, attempt)
        output.feed(logs.read(base, "stdout", 0, HEAD).data)
        place = max(output.offset, logs.size(base, "stdout") - HEAD)
        end = logs.read(base, "stdout", place, HEAD)
        output.feed(end.data, end.offset - output.offset)
        stderr = logs.read(base, "stderr", -HEAD, HEAD).data
        report = output.end(stderr.decode("utf-8", "replace"))
        if report.session_gone:
            return Told((), gone=True, begun=False, said="")
        new = chosen_session(of, structs.replace(run, resume=None))
        sessions = tuple(s for s in (output.session, new) if s is not None)
        begun = output.session is not None
        return Told(sessions, gone=False, begun=begun, said=output.said)


def chosen_session(of: AgentAdapter, run: AgentRun) -> str | None:
    """The name of the session, if the program lets us choose it."""
    return run.session if run.session in of.invocation(run).argv else None


def session_of(job: str, attempt: int) -> str:
    """The name of the session of an attempt, for a program that lets us choose it.

    It is known before the start and after a crash alike, since it follows from what is
    saved anyway.
    """
    digest = hashlib.sha256(f"forge-actors {job} {attempt}".encode()).digest()
    return str(uuid.UUID(bytes=digest[:16], version=4))
