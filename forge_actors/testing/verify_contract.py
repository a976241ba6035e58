"""What every store keeps of the check that an agent's work has to pass, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from forge_actors.domain.agents import AgentReport, Usage
from forge_actors.domain.capacity import CHECK_TOKENS, tokens_for
from forge_actors.domain.jobs import AgentSpec
from forge_actors.domain.verifying import Verify
from forge_actors.testing.made_changes import dispatched, job, repository, requeued

if TYPE_CHECKING:
    from forge_actors.domain.changes import JobAdded
    from forge_actors.testing.store_contract import Open

ASKED = Verify("make test", 60.0, 2)
TOKENS = tokens_for("agent-run", "codex")
CHECKING = structs.replace(
    ASKED,
    checking=True,
    entered=1,
    passed=1,
    tokens=TOKENS,
    work=AgentReport("codex", "s", ok=True, text="done", usage=Usage(1, 2)),
)


def _verified() -> JobAdded:
    added = job()
    spec = structs.replace(added.spec, agent=AgentSpec("codex", "d"), verify=ASKED)
    details = structs.replace(added.details, provider="codex")
    mine = structs.replace(
        added.job, agent="codex", kind="agent-run", tokens=TOKENS, verify=ASKED
    )
    return structs.replace(added, job=mine, spec=spec, details=details)


async def check_the_step_of_a_job_is_kept(open_: Open) -> None:
    async with open_() as store:
        await store.save([repository(), _verified(), dispatched()]).wait()
        again = requeued(state="waiting_for_heavy_check")
        store.save([structs.replace(again, verify=CHECKING)])
        # Seen at once, although it is not durable.
        assert store.spec("job").verify == CHECKING
    async with open_() as store:
        [loaded] = store.load_jobs("repo")
        assert (loaded.state, loaded.verify) == ("waiting_for_heavy_check", CHECKING)
        assert (loaded.tokens, loaded.counted) == (CHECK_TOKENS, 0)
        assert not loaded.isolatable
        assert store.spec("job").verify == CHECKING


async def check_a_job_that_mends_needs_its_agent_again(open_: Open) -> None:
    mending = structs.replace(ASKED, entered=1, passed=1, round=1, checks=(1,))
    checking = structs.replace(ASKED, checking=True, tokens=TOKENS)
    async with open_() as store:
        await store.save([repository(), _verified(), dispatched()]).wait()
        first = requeued(state="waiting_for_heavy_check")
        await store.save([structs.replace(first, verify=checking)]).wait()
        second = structs.replace(requeued(attempt=2, fence=2), verify=mending)
        await store.save([dispatched(attempt=2, fence=2), second]).wait()
    async with open_() as store:
        [loaded] = store.load_jobs("repo")
        assert (loaded.state, loaded.tokens) == ("queued", TOKENS)
        assert loaded.verify == mending


CHECKS = (
    check_the_step_of_a_job_is_kept,
    check_a_job_that_mends_needs_its_agent_again,
)
