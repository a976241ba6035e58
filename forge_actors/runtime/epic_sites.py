"""Where the schedulers of a service work: their repositories, and issues as jobs."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from msgspec import structs
from msgspec.json import encode as to_json

from forge_actors.domain.descriptors import FIRST
from forge_actors.domain.epic import places
from forge_actors.domain.errors import NotFound, Refused
from forge_actors.domain.github.places import is_cloud
from forge_actors.edges.agents.finding import adapter
from forge_actors.runtime.epic_environment import (
    check_programs,
    worker_environment,
    worker_secrets,
    worker_variables,
)
from forge_actors.runtime.epic_jobs import IssueJobs
from forge_actors.runtime.epic_looks import Kept
from forge_actors.runtime.epic_place import controller_place, opened
from forge_actors.runtime.epic_run import (
    EpicOptions,
    RunSite,
    plan_folder,
    worker_command,
    worktree_path,
)
from forge_actors.runtime.epic_settings import parallel, with_agent
from forge_actors.runtime.epic_source import epic_at, open_graph
from forge_actors.runtime.secrets import SecretFolder

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    import trio

    from forge_actors.actors.epic import Context
    from forge_actors.domain.epic.graph import Graph
    from forge_actors.domain.epic.runs import EpicRequest, EpicRun
    from forge_actors.domain.epic.workers import WorkerOrder
    from forge_actors.runtime.epic_jobs import Begun
    from forge_actors.runtime.epic_settings import EpicSettings
    from forge_actors.runtime.epics import ServedEpics
    from forge_actors.runtime.github_settings import GitHubSettings

log = logging.getLogger(__name__)


def checked(served: ServedEpics, request: EpicRequest) -> tuple[EpicSettings, int]:
    """The settings of a run, and how many issues it works on at once.

    Raises:
        InvalidInput: naming what is wrong.
    """
    settings = served.settings()
    wanted = with_agent(settings.epic, request.agent)
    limit = parallel(request.max_parallel, wanted)
    if "://" in request.epic:
        epic_at(request.epic, settings.github)
    wanted.check_ready()
    check_programs(wanted, worker_environment(wanted))
    return wanted, limit


class JobSite:
    """What one scheduler works in, from `opened` on."""

    root: Any
    common_dir: str
    issues: IssueJobs

    def __init__(self, served: ServedEpics, run: EpicRun) -> None:
        self._served = served
        self._run = run
        self._site: RunSite
        self._checkout: str
        #: Of the EPIC.
        self._number = 0
        self._context: Context | None = None

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """
        Raises:
            NotFound: its repository was removed.
            InvalidInput, Refused, LockFailed: it cannot be run.
        """
        served, request = self._served, self._run.request
        wanted, limit = checked(served, request)
        repo = served.registry.get(self._run.repo)
        if repo is None:
            raise NotFound("its repository was removed")
        github, secrets = served.settings().github, SecretFolder(served.home)
        shared = None
        if "://" in request.epic and is_cloud(epic_at(request.epic, github).place.host):
            shared = served.github.reader()
        graph = open_graph(request.epic, github, secrets, shared=shared)
        options = EpicOptions(
            target=request.epic,
            folder=repo.path,
            home=served.home,
            max_parallel=request.max_parallel,
            agent=request.agent,
            resume=request.resume,
            force=request.force,
            accept_config_change=request.accept_config_change,
        )
        try:
            place = await controller_place(repo.path)
            folder = await plan_folder(graph, request.epic)
            with opened(place) as root:
                self._checkout, self.common_dir = place.checkout, place.common_dir
                self._site = RunSite(options, wanted, limit, graph, root, folder)
                self._number = await _number_of(graph, request.epic, github)
                yield
        finally:
            await graph.close()

    def context(self, nursery: trio.Nursery, **others: Any) -> Context:
        """What the scheduler is given."""
        served = self._served
        self.issues = IssueJobs(
            *(self._run.id, nursery, served.store, served.submit, served.cancel),
            ring=self._ring,
            request=self._request,
            command=self._command,
        )
        out = partial(log.info, "EPIC run %s: %s", self._run.id)
        self._context = self._site.context(self.issues, self.issues, out, **others)
        return self._context

    @property
    def jobs(self) -> dict[int, str]:
        return self.issues.jobs

    def ask_to_stop(self, mode: Literal["drain", "now"]) -> bool:
        """Ask its scheduler to end; False if it has none that could be asked."""
        site = self._site
        try:
            Kept(site.root, site.folder, self._number).ask_to_stop(mode)
        except (NotFound, Refused):
            return False
        self._ring()
        return True

    def _ring(self) -> None:
        if self._context is not None:
            self._context.bell.ring()

    def _request(self, issue: int) -> dict[str, Any]:
        """What the job of an issue is; how it begins is decided when it does."""
        site = self._site
        agent = site.settings.phases.implement.agent
        provider = None if agent is None else adapter(agent).provider
        worktree = worktree_path(site.root.path, site.folder, issue)
        return {
            "repo": self._run.repo,
            "argv": ["epic-worker", str(issue)],
            "kind": "repository-command" if agent is None else "agent-run",
            "name": f"issue #{issue}",
            "claims": [f"write:worktree:{worktree}"],
            "provider": provider,
            "isolate": False,
            "request_id": f"{self._run.id}-{issue}-{self._served.new_id()}",
            "origin": f"epic:{self._run.id}",
            # Another attempt would be admitted anew, or not.
            "replay": "safe",
            "stop_signal": "SIGINT",
        }

    def _command(self, order: WorkerOrder) -> Begun:
        handed = structs.replace(order, controller=FIRST, run=FIRST + 1)
        site = self._site
        # The worker goes by what its scheduler goes by, whatever the files say by now.
        place = places.within(places.settings(self._number), site.folder)
        site.root.write(place, to_json(self._served.settings()))
        config = Path(places.path(site.root.path, place))
        options = structs.replace(site.options, config=config)
        words = worker_command(options, self._checkout, site.folder, handed)
        wanted = site.settings
        return tuple(words), worker_variables(wanted), worker_secrets(wanted)


async def _number_of(graph: Graph, target: str, settings: GitHubSettings) -> int:
    """The number of the EPIC; GitHub is not asked for it."""
    if "://" in target:
        return epic_at(target, settings).number
    return (await graph.epic()).number
