"""Jobs whose agent program is not there: they are not in line until it is.

Whether it is costs a look at the files of the machine, so it is asked when a job would
come into line, and again at a pass while one waits for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.jobs import Job

    #: Why the program of an agent cannot run; None if nothing is known against it.
    AgentProblem = Callable[[str], str | None]


class Lack(NamedTuple):
    """What a job waits for, and since when."""

    agent: str
    since: float
    reason: str


class Agentless:
    """The jobs of one repository that wait for a program."""

    def __init__(self, problem: AgentProblem | None = None) -> None:
        self._problem = problem
        self._lacks: dict[str, Lack] = {}

    def keeps(self, job: Job, now: float) -> bool:
        """Whether it has to wait; from then on it is known here."""
        if job.agent is None or job.checking or self._problem is None:
            return False
        reason = self._problem(job.agent)
        if reason is None:
            return False
        self._lacks[job.id] = Lack(job.agent, now, reason)
        return True

    def __bool__(self) -> bool:
        """Whether any job waits for one."""
        return bool(self._lacks)

    def problem_of(self, agent: str) -> str | None:
        """Why the program of an agent cannot run; None if nothing is known of that."""
        return None if self._problem is None else self._problem(agent)

    def lack_of(self, job_id: str) -> Lack | None:
        return self._lacks.get(job_id)

    def forget(self, job_id: str) -> None:
        self._lacks.pop(job_id, None)

    def take_able(self) -> list[str]:
        """Those whose program is there by now; they are known here no more."""
        if not self._lacks or self._problem is None:
            return []
        agents = {lack.agent for lack in self._lacks.values()}
        problems = {agent: self._problem(agent) for agent in agents}
        able = []
        for job_id, lack in list(self._lacks.items()):
            reason = problems[lack.agent]
            if reason is None:
                able.append(job_id)
                del self._lacks[job_id]
            else:
                self._lacks[job_id] = lack._replace(reason=reason)
        return able
