"""Orders: what the launcher is told of a dispatched job, and its environment."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.errors import NotFound, StoreFailed
from forge_actors.domain.inputs import VARIABLE, InputsWanted
from forge_actors.domain.isolation import own_worktree
from forge_actors.domain.jobs import AGENT_KINDS
from forge_actors.domain.launch import ArtifactOrder, LaunchOrder, Secrets
from forge_actors.domain.requests import decode_argv
from forge_actors.domain.worktrees import Isolation
from forge_actors.runtime.artifact_settings import ArtifactSettings
from forge_actors.runtime.input_folders import input_folder
from forge_actors.runtime.secrets import SecretFolder

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from forge_actors.domain.inputs import Input
    from forge_actors.domain.jobs import Job, JobSpec
    from forge_actors.domain.ports import Store
    from forge_actors.domain.verifying import Verify
    from forge_actors.domain.worktrees import WorktreeWanted

    #: The order of a job's agent, or with why it cannot run.
    AgentOrders = Callable[[LaunchOrder, JobSpec], LaunchOrder]
    #: The order with what keeps its job from effects.
    Guard = Callable[[LaunchOrder, JobSpec], LaunchOrder]
    #: What worktree an order needs; None if its repository is not there any more.
    WorktreeMaker = Callable[[LaunchOrder, Isolation], WorktreeWanted | None]

#: What a job gets of the environment of whoever started the service. Nothing else.
ALLOWED = frozenset(
    {
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "TZ",
        "TMPDIR",
        "SSH_AUTH_SOCK",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
    }
)
ALLOWED_PREFIXES = ("LC_", "XDG_")
#: Seconds that a check has to end when it is asked to.
CHECK_GRACE = 10.0


def allowed_environment(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The part of an environment that jobs may see."""
    return {
        name: value
        for name, value in environ.items()
        if name in ALLOWED or name.startswith(ALLOWED_PREFIXES)
    }


class OrderMaker:
    """Builds launch orders; the launcher adds what every job has in its environment."""

    def __init__(
        self,
        home: Path,
        store: Store,
        output_limit: Callable[[], int],
        worktrees: WorktreeMaker | None = None,
        artifacts: Callable[[], ArtifactSettings] = ArtifactSettings,
        agents: AgentOrders | None = None,
        guard: Guard = lambda order, _: order,
    ) -> None:
        self._home = str(home)
        self._worktrees = worktrees
        self._agents = agents
        self._guard = guard
        self._secrets = SecretFolder(home)
        self._store = store
        self._output_limit = output_limit
        self._artifacts = artifacts

    def __call__(self, job: Job) -> LaunchOrder:
        spec = self._store.spec(job.id)
        assert job.fence is not None, "only a dispatched job has an order"
        order = LaunchOrder(
            job=job.id,
            repo=job.repo,
            attempt=job.attempt,
            fence=job.fence,
            argv=decode_argv(list(spec.argv), field="argv"),
            cwd=spec.cwd,
            env={
                **spec.env,
                "FORGE_JOB_ID": job.id,
                "FORGE_REPO_ID": job.repo,
                "FORGE_ATTEMPT": str(job.attempt),
                "FORGE_FENCE": str(job.fence),
                "FORGE_CONTROLLER_HOME": self._home,
            },
            stdin=spec.stdin,
            log=log_base(self._home, job.id, job.attempt),
            output_limit=self._output_limit(),
            wall=spec.budgets.execution,
            idle=spec.budgets.idle,
            stop_signal=spec.stop_signal,
            grace=spec.grace,
            keep_leftovers=spec.keep_leftovers,
            pty=spec.pty,
            limits=spec.limits,
            after_job=spec.after_job,
            artifacts=self._to_collect(spec.artifacts) if spec.artifacts else None,
            outputs=bool(spec.outputs),
            inputs=self._to_place(job, spec.inputs) if spec.inputs else None,
            admission=spec.admission,
            lasting=spec.admission is not None,
        )
        if order.inputs is not None:
            order.env[VARIABLE] = order.inputs.folder
        isolation = spec.isolation
        if isolation is None and job.kind in AGENT_KINDS:
            # That it has become isolated is about to be saved.
            isolation = Isolation() if own_worktree(job.id) in job.claims else None
        if isolation is not None:
            order = self._isolated(order, isolation)
        if spec.secrets:
            order = self._with_secrets(order, spec.secrets)
        order = self._guard(order, spec)
        if spec.agent is None or order.problem is not None:
            return order
        if spec.verify is not None and spec.verify.checking:
            return check_order(order, spec.verify)
        if self._agents is None:
            return structs.replace(order, problem="no agent can be run here")
        return self._agents(order, spec)

    def _isolated(self, order: LaunchOrder, isolation: Isolation) -> LaunchOrder:
        if self._worktrees is None:
            return structs.replace(order, problem="no worktree can be made here")
        wanted = self._worktrees(order, isolation)
        if wanted is None:
            return structs.replace(order, problem="its repository was removed")
        return structs.replace(order, wanted=wanted)

    def _to_collect(self, patterns: tuple[str, ...]) -> ArtifactOrder:
        limits = self._artifacts()
        home, seconds = os.path.abspath(self._home), limits.seconds
        return ArtifactOrder(patterns, home, limits.files, limits.bytes, seconds)

    def _to_place(self, job: Job, inputs: tuple[Input, ...]) -> InputsWanted:
        limits = self._artifacts()
        folder = input_folder(self._home, job.id, job.attempt)
        return InputsWanted(folder, inputs, limits.files, limits.bytes, limits.seconds)

    def _with_secrets(self, order: LaunchOrder, names: tuple[str, ...]) -> LaunchOrder:
        """The order with the values as they are now, or with why it has none."""
        values = Secrets()
        for name in names:
            try:
                values[name] = os.fsdecode(self._secrets.read(name))
            except (NotFound, StoreFailed) as error:
                return structs.replace(order, problem=str(error))
        return structs.replace(order, secrets=values)


class CheckOrder(LaunchOrder, frozen=True):
    """The order of an attempt of the check of an agent's work."""


def check_order(order: LaunchOrder, verify: Verify) -> CheckOrder:
    """What is to run where the agent of a job has worked, in place of that."""
    fields = {name: getattr(order, name) for name in LaunchOrder.__struct_fields__}
    fields |= {
        "argv": ("/bin/sh", "-c", verify.command),
        "stdin": None,
        "wall": verify.timeout,
        "idle": None,
        "stop_signal": "SIGTERM",
        "grace": CHECK_GRACE,
        "pty": False,
        "outputs": False,
    }
    return CheckOrder(**fields)


def log_base(home: str, job: str, attempt: int) -> str:
    """The path, without suffix, of the logs of one attempt."""
    return f"{home}/logs/{job}.{attempt}"
