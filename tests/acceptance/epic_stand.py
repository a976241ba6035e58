"""A repository with a plan, runs of its EPIC, and workers that do what a test says."""

from __future__ import annotations

import fcntl
import json
import os
from typing import TYPE_CHECKING, Any

from msgspec import structs

from forge_actors.domain.epic.plan_file import issue_url, repository_of
from forge_actors.domain.epic.records import Claim, EngineState, RunKey, encode
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.root import FolderRoot
from forge_actors.runtime.epic_place import locks
from forge_actors.runtime.epic_plan import plan_key
from tests.acceptance.bench import Bench, contents
from tests.acceptance.epic_forks import Call

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.epic.graph import RepositoryNode
    from forge_actors.domain.epic.places import Place

EPIC = 1000
#: Statements that give an issue a shell script as its worker, with its number as $1.
LIGHT = """
def command(options, checkout, folder, order):
    issue = str(order.claim.run_key.issue_number)
    return ["sh", "-c", SCRIPT, "worker", issue]
epic_run.worker_command = command
"""
#: Statements that have a call killed where it comes to this function.
KILLED = """
def killed(*_args, **_options):
    os.kill(os.getpid(), signal.SIGKILL)
import forge_actors.actors.epic as actor
from forge_actors.edges.epic.namespaces import FileNamespaces
from forge_actors.edges.epic.spawning import SpawnedWorkers
{place} = killed
"""


class Stand(Bench):
    """One repository, the plan of an EPIC, and its settings."""

    def __init__(self) -> None:
        super().__init__()
        self.checkout = self.repository("app")
        self.plan = self.root / "plan.toml"
        self.config = self.root / "epic.toml"
        self.home = self.root / "home"
        #: An issue on GitHub, in place of the plan.
        self.url: str | None = None
        #: Where workers write what happens to them.
        self.trace = self.root / "trace"
        self.trace.touch()
        self._issues: dict[int, str] = {}
        self._calls: list[Call] = []
        self.settings()

    # -- what is to be done ----------------------------------------------------------

    def settings(
        self, poll: str = "60s", implement: str = "true", limit: int = 2
    ) -> None:
        self.config.write_text(
            f"[epic]\npoll_interval = '{poll}'\nmax_parallel = {limit}\nfailures = 1\n"
            f"[epic.phases.implement]\nargv = ['sh', '-c', '''{implement}''']\n"
        )

    def issue(self, number: int, more: str = "") -> None:
        """Have an issue in the plan, or change it."""
        self._issues[number] = f"[[issue]]\nnumber = {number}\ntitle = 'T'\n{more}\n"
        self.write_plan("".join(self._issues.values()))

    def write_plan(self, text: str) -> None:
        fresh = self.root / "plan.new"
        fresh.write_text(f"title = 'E'\n{text}")
        fresh.replace(self.plan)

    @property
    def target(self) -> str:
        return str(self.plan) if self.url is None else self.url

    # -- calls -----------------------------------------------------------------------

    def call(self, what: str, *words: str, changed: str = "", **environ: str) -> Call:
        """Any call of the verb, in the checkout unless the words say otherwise."""
        usual = ["--checkout", str(self.checkout), "--home", str(self.home)]
        called = ["epic", what, *usual, *words]
        made = Call(called, self.root, changed=changed, environ=environ)
        self._calls.append(made)
        return made

    def run(
        self, *words: str, verb: str = "run", script: str = "", changed: str = ""
    ) -> Call:
        """Begin a run, of the plan unless other words say what of; its workers are
        real ones unless there is a script for them."""
        target = [] if "://" in "".join(words) else [self.target]
        if script:
            changed += f"\nSCRIPT = {script!r}\n{LIGHT}"
        config = ["--config", str(self.config), "--plain"]
        return self.call(verb, *target, *words, *config, changed=changed)

    def stop(self, how: str) -> None:
        asked = self.call("stop", self.target, how)
        assert asked.wait() == 0, asked.err

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(
            self.call("status", self.target, "--json").out
        )
        return found

    # -- what is kept ----------------------------------------------------------------

    @property
    def common(self) -> Path:
        return self.checkout / ".git"

    @property
    def node(self) -> RepositoryNode:
        """The repository that stands for the plan."""
        return repository_of(plan_key(self.plan))

    @property
    def folder(self) -> Place:
        return self.node.folder if self.url is None else ()

    @property
    def kept(self) -> Path:
        """Where the records of the plan are."""
        return self.common.joinpath("forge-actors", *self.folder)

    @property
    def record_path(self) -> Path:
        number = EPIC if self.url is None else int(self.url.rpartition("/")[2])
        return self.kept / "epics" / str(number) / "scheduler.json"

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.record_path.read_text())
        return found

    @property
    def end(self) -> tuple[str | None, ...]:
        """The admission of the last run, why, and why it ended."""
        admission = self.record["admission"]
        reason = self.record["invocation"]["end_reason"]
        return admission["status"], admission["reason"], reason

    def claims(self, issue: int) -> list[Claim]:
        root = FolderRoot(str(self.common))
        try:
            found = FileNamespaces(root, self.folder).look(issue)
        finally:
            root.close()
        assert found.problem is None
        return list(found.claims)

    def closings(self, issue: int) -> list[str | None]:
        """How the claims of an issue were closed; None for one that is open."""
        return [
            None if claim.closed is None else claim.closed.classification
            for claim in self.claims(issue)
        ]

    def is_busy(self, issue: int) -> bool:
        root = FolderRoot(str(self.common))
        try:
            return locks(root, self.folder).is_busy(issue)
        finally:
            root.close()

    def let_go(self, issue: int | None = None) -> None:
        """Wait until nobody has the lock of an issue, or that of the controller."""
        place = self.common
        if issue is not None:
            place = self.kept / "issues" / str(issue) / "run.lock"
        file = os.open(place, os.O_RDONLY | os.O_CLOEXEC)
        try:
            fcntl.flock(file, fcntl.LOCK_SH)
        finally:
            os.close(file)

    def saves(self, issue: int, phase: str) -> str:
        """The shell command of a worker that saves a state of its issue."""
        node = self.node
        state = EngineState(
            run_key=RunKey(node.id, issue),
            issue_url=issue_url(node.place, issue),
            run_id="r-0123456789abcdef",
            phase="implement",
            config_digest=f"sha256:{'0' * 64}",
            branch="b",
            base_commit="0" * 40,
            tries={},
            updated_at="2099-01-01T00:00:00Z",
        )
        path = self.root / f"{issue}.{phase}"
        path.write_bytes(encode(structs.replace(state, phase=phase)))
        folder = self.kept / "issues" / str(issue) / "state"
        return f"mkdir -p {folder} && cp {path} {folder}/state.json"

    @property
    def traced(self) -> list[str]:
        return self.trace.read_text().split()

    def files(self) -> dict[str, bytes]:
        """All that is kept of runs, but who has the lock of the controller."""
        return {
            str(path): held
            for path, held in contents(self.common / "forge-actors")
            if path.name != "controller.lock"
        }

    def close(self) -> None:
        for call in self._calls:
            call.close()
        super().close()
