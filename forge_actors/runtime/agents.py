"""Agents: from a request that names one to a job, and from that job to its order.

No prompt and no secret is in what is saved of a job or in the command that is made of
it: the prompt is a file that the program has as its input, and keys are variables.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.agents import AgentRun, Budget
from forge_actors.domain.answers import answer_to
from forge_actors.domain.errors import InvalidInput, Refused, StoreFailed
from forge_actors.domain.jobs import AGENT_KINDS, AgentSpec
from forge_actors.domain.launch import LaunchOrder, Secrets
from forge_actors.domain.requests import OF_AGENTS, decode_argv
from forge_actors.domain.spending import MAX_COST, MAX_TOKENS
from forge_actors.edges.agents import finding
from forge_actors.edges.agents.output import AgentOutput
from forge_actors.runtime import telemetry
from forge_actors.runtime.agent_choices import choices_of
from forge_actors.runtime.agent_sessions import Sessions, chosen_session
from forge_actors.runtime.prompts import PromptFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from forge_actors.domain.agents import AgentAdapter, Usage
    from forge_actors.domain.jobs import JobSpec
    from forge_actors.domain.requests import JobRequest
    from forge_actors.runtime.agent_sessions import Start

_log = logging.getLogger(__name__)

DEFAULT_KIND = "agent-run"
#: The kind of a request that names none.
UNNAMED_KIND = "repository-command"


class AgentOrder(LaunchOrder, frozen=True, kw_only=True):
    """The order of an attempt whose output somebody has to read."""

    agent: str
    run: AgentRun

    def plain(self) -> LaunchOrder:
        """What a launcher needs of it."""
        fields = LaunchOrder.__struct_fields__
        return LaunchOrder(**{name: getattr(self, name) for name in fields})


class Agents:
    """What the runtime of a home knows of agents.

    `environ` is that of whoever started it, `allowed` the part of it that jobs have.
    """

    def __init__(
        self, home: Path | str, environ: Mapping[str, str], allowed: Mapping[str, str]
    ) -> None:
        self._prompts = PromptFolder(home)
        self.sessions = Sessions(str(home), self._prompts)
        self._environ = environ
        self._allowed = allowed

    def accept(self, request: JobRequest, prefix: str) -> tuple[JobRequest, AgentSpec]:
        """The request with what its agent needs, and what is saved of the agent.

        Raises:
            InvalidInput: a field does not fit.
            Refused: its adapter cannot be loaded.
        """
        if request.agent is None:
            field = next(n for n in OF_AGENTS if getattr(request, n) is not None)
            raise InvalidInput(f"{prefix}{field}", "is for a job with an agent")
        if request.prompt is None:
            raise InvalidInput(
                f"{prefix}prompt", "is missing: what is the agent to do?"
            )
        if request.stdin is not None:
            raise InvalidInput(f"{prefix}stdin", "is the prompt, for a job of an agent")
        if request.pty:
            raise InvalidInput(f"{prefix}pty", "is not for agents: nobody types")
        kind = DEFAULT_KIND if request.kind == UNNAMED_KIND else request.kind
        if kind not in AGENT_KINDS:
            kinds = tuple(sorted(AGENT_KINDS))
            raise InvalidInput(f"{prefix}kind", f"{kind!r} has no agent", allowed=kinds)
        of, choices = choices_of(request, prefix)
        if of.program is None and not request.argv:
            raise InvalidInput(f"{prefix}argv", "names no program to run")
        provider = request.provider or of.provider
        isolate = request.isolate
        if isolate is None and not request.claims and request.in_worktree is None:
            isolate = True
        digest = self._prompts.keep(request.prompt, field=f"{prefix}prompt")
        named = [] if of.program is None else [of.program]
        fields = {
            "kind": kind,
            "argv": [*named, *request.argv],
            "provider": provider,
            "isolate": isolate,
            "stop_signal": request.stop_signal or of.stop_signal,
            "grace": of.grace if request.grace is None else request.grace,
            "agent": None,
            "prompt": None,
            "budget_cost": None,
            "budget_tokens": None,
        }
        budget = _budget(request, prefix)
        return structs.replace(request, **fields), AgentSpec(
            of.name, digest, choices, budget=budget
        )

    def order(self, order: LaunchOrder, spec: JobSpec) -> LaunchOrder:
        """The order with the command of its agent, or with why there is none."""
        agent = spec.agent
        assert agent is not None, "it is the job of one"
        try:
            of = finding.adapter(agent.name)
            program = order.argv[0]
            if of.program is not None:
                program = finding.find(of, self.environment(of))
            start = self._start(of, spec, program, order.argv, order.job, order.attempt)
            since = 0 if spec.verify is None else spec.verify.entered
            answer = answer_to(agent, order.job, since=since)
            if answer is not None:
                start = self.sessions.answered(start, answer)
            run = structs.replace(start.run, telemetry=telemetry.path(order.log))
            made = of.invocation(run)
        except (InvalidInput, Refused, StoreFailed) as error:
            return structs.replace(order, problem=str(error))
        except Exception as error:  # noqa: BLE001 - an adapter can be of others
            why = f"the adapter of {agent.name} made no command: {error!r}"
            return structs.replace(order, problem=why)
        if run.telemetry in made.env.values():
            telemetry.prepare(order.log)
        prompt = self._prompts.path(start.prompt)
        if not os.path.isfile(prompt):
            return structs.replace(order, problem="its prompt is not there any more")
        fields = {name: getattr(order, name) for name in LaunchOrder.__struct_fields__}
        fields |= {
            "argv": made.argv,
            "stdin": prompt,
            "env": {**self._given(of.variables), **made.env, **order.env},
            "secrets": Secrets({**self._given(of.credentials), **order.secrets}),
        }
        return AgentOrder(**fields, agent=of.name, run=run)

    def output(
        self,
        spec: JobSpec,
        run: AgentRun,
        now: float,
        used: Callable[[str, str], Usage | None],
    ) -> AgentOutput | None:
        """What reads the output of an attempt; None if its adapter is gone.

        `used` says what a session of an agent had used before.
        """
        agent = spec.agent
        assert agent is not None, "it is the job of one"
        try:
            of = finding.adapter(agent.name)
        except (InvalidInput, Refused):
            return None
        zone = spec.env.get("TZ") or self._allowed.get("TZ")
        try:
            before = None if run.resume is None else used(of.name, run.resume)
            reader = of.reader(run, now=now, zone=zone, before=before)
            chosen = run.resume or chosen_session(of, run)
        except Exception as error:  # noqa: BLE001 - an adapter can be of others
            _log.warning("the adapter of %s reads nothing: %r", of.name, error)
            return None
        return AgentOutput(of.name, reader, chosen, resumed=run.resume is not None)

    def run_of(self, spec: JobSpec, job: str, attempt: int) -> AgentRun | None:
        """That of an attempt that an earlier runtime launched, as far as the program
        has its sessions still; None if nobody can tell."""
        assert spec.agent is not None, "it is the job of one"
        try:
            of = finding.adapter(spec.agent.name)
            argv = decode_argv(list(spec.argv), field="argv")
            return self._start(of, spec, argv[0], argv, job, attempt).run
        except Exception as error:  # noqa: BLE001 - an adapter can be of others
            _log.warning("how %s began is not known: %r", spec.agent.name, error)
            return None

    def ends_after_stop(self, spec: JobSpec) -> bool:
        """Whether a good end that came after a stop proves nothing."""
        assert spec.agent is not None, "it is the job of one"
        return finding.adapter(spec.agent.name).ends_after_stop

    def problem(self, name: str) -> str | None:
        """Why the program of an agent cannot be started; None if it is there.

        Whether it is logged in is not asked: a job can have a key of its own.
        """
        try:
            of = finding.adapter(name)
            if of.program is not None:
                finding.find(of, self.environment(of))
        except (InvalidInput, Refused) as error:
            return str(error)
        return None

    def _start(
        self,
        of: AgentAdapter,
        spec: JobSpec,
        program: str,
        argv: tuple[str, ...],
        job: str,
        attempt: int,
    ) -> Start:
        assert spec.agent is not None, "it is the job of one"
        agent, verify = spec.agent, spec.verify
        run = AgentRun(program, argv[1:])
        env = self._env_of(of, spec)
        if verify is None:
            return self.sessions.start(of, agent, env, run, job, attempt)
        if verify.round:
            agent = self.sessions.to_mend(of, agent, env, job, verify)
        return self.sessions.start(of, agent, env, run, job, attempt, verify.entered)

    def session(self, spec: JobSpec, job: str, attempts: int) -> str | None:
        """The session with which somebody could go on after a job; None if there was
        none.

        Raises:
            InvalidInput, Refused: its adapter cannot be loaded.
        """
        assert spec.agent is not None, "it is the job of one"
        of = finding.adapter(spec.agent.name)
        env = self._env_of(of, spec)
        return self.sessions.found(of, env, job, attempts, spec.verify)

    def prompt(self, text: str) -> str:
        """The digest by which a prompt is kept from now on."""
        return self._prompts.keep(text, field="prompt")

    def _env_of(self, of: AgentAdapter, spec: JobSpec) -> dict[str, str]:
        return {**self.environment(of), **spec.env}

    def environment(self, of: AgentAdapter) -> dict[str, str]:
        """What its program would have, as a job of this home."""
        override = finding.override_of(of.name)
        own = {*of.variables, *of.credentials, override}
        return {**self._allowed, **self._given(frozenset(own))}

    def _given(self, names: frozenset[str]) -> dict[str, str]:
        return {name: self._environ[name] for name in names if name in self._environ}


def _budget(request: JobRequest, prefix: str) -> Budget | None:
    cost, tokens = request.budget_cost, request.budget_tokens
    if cost is not None and not 0 < cost <= MAX_COST:
        raise InvalidInput(f"{prefix}budget_cost", f"must be over 0, to {MAX_COST:g}")
    if tokens is not None and not 0 < tokens <= MAX_TOKENS:
        raise InvalidInput(f"{prefix}budget_tokens", f"must be 1 to {MAX_TOKENS}")
    return Budget(cost, tokens) or None
