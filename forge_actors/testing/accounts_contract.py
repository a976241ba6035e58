"""What every store keeps of providers that refuse jobs, as checks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

from msgspec import structs

from forge_actors.domain.accounts import Account
from forge_actors.domain.capacity import provider_token
from forge_actors.domain.changes import AccountChanged, JobRedirected
from forge_actors.domain.events import Event
from forge_actors.domain.jobs import AgentChoice, AgentSpec
from forge_actors.testing.made_changes import dispatched, job, repository, requeued

if TYPE_CHECKING:
    from forge_actors.testing.store_contract import Open

CHOICES = (
    AgentChoice("claude", "claude", "claude", "SIGTERM", 10.0),
    AgentChoice("copilot", "github-copilot", "copilot", "SIGINT", 15.0),
)


class _Keeper(Protocol):
    def accounts(self) -> tuple[Account, ...]: ...


async def check_an_account_is_kept_as_it_was_last(open_: Open) -> None:
    closed = Account("claude", False, 9.0, "usage", "job", 99.5, True, 2, "enough")
    other = Account("codex", False, 9.5, "auth")
    reopened = structs.replace(closed, open=True, since=20.0, retry_at=None)
    async with open_() as store:
        await store.save(
            [
                AccountChanged(closed, Event("provider_closed", 9.0)),
                AccountChanged(other, Event("provider_closed", 9.5)),
            ]
        ).wait()
    async with open_() as store:
        assert cast("_Keeper", store).accounts() == (closed, other)
        event = Event("provider_opened", 20.0)
        await store.save([AccountChanged(reopened, event)]).wait()
    async with open_() as store:
        assert cast("_Keeper", store).accounts() == (reopened, other)


async def check_refused_attempts_are_counted(open_: Open) -> None:
    async with open_() as store:
        again = structs.replace(requeued(state="waiting_for_limit"), refused=3)
        await store.save([repository(), job(), dispatched(), again]).wait()
    async with open_() as store:
        [loaded] = store.load_jobs("repo")
        assert (loaded.state, loaded.refused) == ("waiting_for_limit", 3)


async def check_another_agent_takes_a_job_over(open_: Open) -> None:
    added = job()
    spec = structs.replace(
        added.spec, argv=("claude", "-v"), agent=AgentSpec("claude", "d", CHOICES)
    )
    mine = structs.replace(added.job, agent="claude", choices=CHOICES)
    added = structs.replace(added, job=mine, spec=spec)
    event = Event("job_redirected", 12.0, "repo", "job")
    async with open_() as store:
        await store.save([repository(), added]).wait()
        store.save([JobRedirected("job", CHOICES[1], event)])
        # Seen at once, although it is not durable.
        assert store.spec("job").argv == ("copilot", "-v")
    async with open_() as store:
        [loaded] = store.load_jobs("repo")
        assert (loaded.agent, loaded.choices) == ("copilot", CHOICES)
        assert provider_token("github-copilot") in loaded.tokens
        spec = store.spec("job")
        assert (spec.stop_signal, spec.grace) == ("SIGINT", 15.0)
        assert spec.agent == AgentSpec("copilot", "d", CHOICES)


CHECKS = (
    check_an_account_is_kept_as_it_was_last,
    check_refused_attempts_are_counted,
    check_another_agent_takes_a_job_over,
)
