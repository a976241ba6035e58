"""A runtime in numbers, read when somebody asks: nothing is counted for nobody.

What is counted of jobs comes from the history, a bounded part of it at each asking, so
that each event counts once however many ask at the same time.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import trio

from forge_actors import __version__
from forge_actors.actors.supervisor_messages import Count, CountMail
from forge_actors.domain.event_counts import EventCounts, Moments
from forge_actors.domain.jobs import STATES, TERMINAL
from forge_actors.domain.metrics import Family, counter, gauge
from forge_actors.domain.spending import MAX_SUMS, sum_of
from forge_actors.domain.waiting import WAITING_KINDS
from forge_actors.runtime.control_jobs import JobControl

if TYPE_CHECKING:
    from typing import Any

    from forge_actors.actors.supervisor_messages import MailCounts, Survey

#: Events that are counted before others get their turn, and for one who asks.
COUNTED_TOGETHER = 2000
COUNTED_AT_ONCE = 100_000
#: Jobs that are asked what they wait for; of the others nobody says.
ASKED_AT_ONCE = 1000
ASKED_TOGETHER = 100
NOT_ASKED = "not_asked"


class MetricsControl(JobControl):
    """The part of the port `Control` that counts."""

    def __init__(self, **parts: Any) -> None:
        super().__init__(**parts)
        # Both are as of the same commit.
        self._counted = self._first_event = self._events.last
        self._counts = EventCounts(self._store.tally.reserved)

    async def metrics(self) -> list[Family]:
        await self._count()
        survey = await self._supervisor.ask(Count)
        mail = await self._supervisor.ask(CountMail)
        waits = await self._waits()
        return [
            Family(
                "forge_build_info",
                "gauge",
                "The version that runs.",
                ("version",),
                {(__version__,): 1},
            ),
            gauge(
                "forge_start_time_seconds",
                "When this runtime began, since 1970.",
                self._started_at,
            ),
            *self._of_jobs(waits),
            *_of_capacity(survey, self._settings().limits.active_repositories),
            *self._counts.families(),
            *self._of_actors(mail),
            *self._of_store(),
            *self._of_agents(),
        ]

    async def _count(self) -> None:
        """Count what came since somebody asked last, as far as one asking does."""
        until = min(self._events.last, self._counted + COUNTED_AT_ONCE)
        while self._counted < until:
            # One step without others in it: whoever asks meanwhile goes on from there.
            upto = min(until, self._counted + COUNTED_TOGETHER)
            events = self._store.find_events(self._counted, upto, {})
            ids = json.dumps(self._counts.starts(events))
            rows = self._store.read("job_moments", ids)
            moments = {job: Moments(*at) for job, *at in rows}
            self._counts.add(events, moments)
            self._counted = upto
            await trio.lowlevel.checkpoint()

    async def _waits(self) -> dict[str, int]:
        """How many jobs wait for what."""
        by_repo: dict[str, list[str]] = {}
        for job, repo in self._store.read("some_waiting", ASKED_AT_ONCE):
            by_repo.setdefault(repo, []).append(job)
        found = dict.fromkeys((*WAITING_KINDS, NOT_ASKED), 0)
        for repo, ids in by_repo.items():
            for begin in range(0, len(ids), ASKED_TOGETHER):
                answers = await self._explain(repo, ids[begin : begin + ASKED_TOGETHER])
                for each in answers.values():
                    if each.waiting is not None:
                        found[each.waiting.kind] += 1
        found[NOT_ASKED] = max(0, self._waiting - sum(found.values()))
        return found

    @property
    def _waiting(self) -> int:
        tally = self._store.tally
        return tally.active - len(tally.reserved)

    def _of_jobs(self, waits: dict[str, int]) -> list[Family]:
        counts = self._store.tally.by_state()
        return [
            Family(
                "forge_jobs",
                "gauge",
                "Jobs that have not ended, by state.",
                ("state",),
                {(s,): counts.get(s, 0) for s in STATES if s not in TERMINAL},
            ),
            Family(
                "forge_jobs_waiting",
                "gauge",
                f"Jobs that wait, by reason; only the first {ASKED_AT_ONCE} are asked.",
                ("reason",),
                {(reason,): count for reason, count in waits.items()},
            ),
            gauge(
                "forge_repositories_known",
                "Repositories that are registered.",
                len(self._registry.all()),
            ),
        ]

    def _of_actors(self, mail: MailCounts) -> list[Family]:
        looks = self._looking
        return [
            Family(
                "forge_actor_mailbox_messages",
                "gauge",
                "Messages that actors have not read; of all repositories together.",
                ("actor",),
                {
                    ("supervisor",): mail.supervisor,
                    ("repository",): mail.repositories,
                    ("clean-up",): mail.clean_up,
                    ("projections",): looks.depth,
                },
            ),
            gauge(
                "forge_repository_mailbox_messages_max",
                "Messages that the repository has not read that has most of them.",
                mail.deepest,
            ),
            Family(
                "forge_actor_failures",
                "counter",
                "Failures of actors; each is followed by a restart, or by giving up.",
                ("actor",),
                {
                    ("repository",): mail.repository_failures,
                    ("clean-up",): mail.clean_up_failures,
                    ("projections",): looks.failures,
                },
            ),
        ]

    def _of_store(self) -> list[Family]:
        store = self._store
        return [
            Family(
                "forge_store_commit_seconds",
                "histogram",
                "How long commits took, the sync of the disk included.",
                histograms={(): store.commits.seconds},
            ),
            counter(
                "forge_store_moves",
                "Moves that were saved; those of one commit share its sync.",
                store.commits.moves,
            ),
            gauge(
                "forge_store_saving",
                "Whether something can be saved.",
                not store.trouble,
            ),
            counter(
                "forge_events",
                "Events of this runtime.",
                self._events.last - self._first_event,
            ),
            gauge(
                "forge_events_uncounted",
                "Events that the numbers of jobs do not tell of yet.",
                self._events.last - self._counted,
            ),
        ]

    def _of_agents(self) -> list[Family]:
        rows = self._store.read("usage_by", "provider", self._started_at, MAX_SUMS)
        tokens: dict[tuple[str, ...], float] = {}
        cost: dict[tuple[str, ...], float] = {}
        attempts: dict[tuple[str, ...], float] = {}
        for used in map(sum_of, rows):
            name = used.key or "none"
            attempts[name,] = used.attempts
            cost[name,] = used.cost or 0.0
            tokens[name, "input"] = used.input_tokens or 0
            tokens[name, "output"] = used.output_tokens or 0
            tokens[name, "cached"] = used.cached_tokens or 0
        of = ("provider",)
        told = "as far as it was told"
        return [
            Family(
                "forge_agent_attempts",
                "counter",
                "Attempts of agents that have ended.",
                of,
                attempts,
            ),
            Family(
                "forge_agent_tokens",
                "counter",
                f"Tokens that agents used, {told}.",
                ("provider", "type"),
                tokens,
            ),
            Family(
                "forge_agent_cost_dollars",
                "counter",
                f"What agents cost, {told}.",
                of,
                cost,
            ),
        ]


def _of_capacity(survey: Survey, repositories: int) -> list[Family]:
    used: dict[tuple[str, ...], float] = {
        ("active_repositories",): survey.active_repositories
    }
    limit: dict[tuple[str, ...], float] = {("active_repositories",): repositories}
    for kind, use in survey.tokens.items():
        used[kind,], limit[kind,] = use.used, use.limit
    return [
        Family("forge_tokens_used", "gauge", "Tokens in use.", ("token",), used),
        Family("forge_tokens_limit", "gauge", "Tokens there are.", ("token",), limit),
        Family(
            "forge_provider_closed",
            "gauge",
            "Providers that are closed, by reason.",
            ("provider", "reason"),
            {
                (account.token.partition(":")[2], account.reason): 1
                for account in survey.closed
            },
        ),
        gauge(
            "forge_pressure",
            "Whether the machine is under pressure.",
            survey.pressure is not None,
        ),
        gauge("forge_draining", "Whether nothing more starts.", survey.draining),
        gauge("forge_repositories_awake", "Repositories with an actor.", survey.awake),
    ]
