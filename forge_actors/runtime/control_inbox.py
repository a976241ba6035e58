"""What can be asked of the inbox: what needs a person, and what was done about it."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from forge_actors.domain.budget_items import spent_items
from forge_actors.domain.changes import ItemMarked
from forge_actors.domain.controller_items import waiting_items
from forge_actors.domain.day_budgets import DAY, spent_budgets
from forge_actors.domain.epic_items import epic_items
from forge_actors.domain.events import Event
from forge_actors.domain.inbox import (
    MAX_ITEMS,
    MAX_MARKS,
    Facts,
    Mark,
    inbox,
    named,
)
from forge_actors.domain.timestamps import timestamp
from forge_actors.domain.trust_items import differing_item
from forge_actors.domain.workflow_items import asking_item, needing_item
from forge_actors.edges.sqlite.rows import account_from, poison_from, quarantine_from
from forge_actors.runtime.control_webhooks import WebhookControl
from forge_actors.runtime.notifying import Notifier
from forge_actors.runtime.orders import log_base
from forge_actors.runtime.views import (
    account_view,
    as_json,
    poison_view,
    quarantine_view,
    shown_text,
)

if TYPE_CHECKING:
    from forge_actors.domain.day_budgets import SpentBudget
    from forge_actors.domain.inbox import Inbox, Item
    from forge_actors.runtime.notifying import NotifySettings


class InboxControl(WebhookControl):
    """The part of the port `Control` that is about what needs a person."""

    _notifier: Notifier | None = None

    async def inbox(self) -> Inbox:
        return self._inbox()

    async def notify(self, settings: NotifySettings) -> None:
        """Tell of each item that comes, until the runtime ends."""
        mailer = self._mailer()
        self._notifier = Notifier(settings, self._store, self._clock, mailer)
        await self._notifier.run(
            lambda: self._events.last, self._events.news, self._inbox
        )

    @property
    def _untold(self) -> list[str]:
        """What keeps people from being told of items, and programs of events."""
        trouble = None if self._notifier is None else self._notifier.trouble.value
        return [*self._webhooks.trouble, *([] if trouble is None else [trouble])]

    async def dismiss(self, item: str) -> Item:
        found = named(self._inbox(MAX_MARKS).items, item)
        now = self._clock.now()
        event = Event("inbox_dismissed", now, job=found.job, data={"item": found.id})
        mark = Mark(found.id, dismissed_at=now)
        await self._store.save([ItemMarked(mark, event)]).wait()
        return found

    def _inbox(self, limit: int = MAX_ITEMS) -> Inbox:
        return inbox(self._facts(), self._dismissed(), self._shown_job, limit)

    def _facts(self) -> Facts:
        read, tally = self._store.read, self._store.tally
        home = os.path.abspath(self._home)
        needs = tally.by_state().get("human_attention_required", 0)
        closed = (account_from(row) for row in read("accounts"))
        return Facts(
            # Looking for them takes its time where there are many jobs.
            attention=[row[0] for row in read("attention_ids")] if needs else (),
            asking=[
                self._shown_job(job) for job in tally.those("waiting_for_approval")
            ],
            kept_from=[row[0] for row in read("kept_from_effects", MAX_ITEMS)],
            quarantined=self._quarantined(),
            aside=self._poisoned(),
            closed={
                each.provider: to_builtins(account_view(each, self._roots))
                for each in closed
                if not each.open
            },
            budgets=spent_items(self._spent_budgets(), timestamp),
            worktrees=[
                {
                    "id": job,
                    "repo": repo,
                    "branch": branch,
                    "path": os.path.join(home, path),
                    "reason": shown_text(reason, self._roots),
                    "made_at": timestamp(made_at),
                }
                for job, repo, branch, path, reason, made_at in read("stuck_worktrees")
            ],
            hooks=[
                to_builtins(hook.view())
                for hook in self._webhooks.hooks.values()
                if hook.mark.closed is not None
            ],
            differing=[
                differing_item(repo, name, differs, timestamp)
                for repo, name, differs in read("differing")
            ],
            workflows=[
                *(asking_item(row, timestamp) for row in read("asking_steps")),
                *(needing_item(row, timestamp) for row in read("needing_workflows")),
            ],
            controllers=waiting_items(read("controllers_that_wait"), timestamp),
            epics=epic_items(read("epics_in_need", MAX_ITEMS), timestamp),
            logs=partial(log_base, home),
        )

    def _spent_budgets(self) -> tuple[SpentBudget, ...]:
        """Those of today: nothing is looked for where there is no budget."""
        budgets = self._settings().budgets.budgets()
        if not budgets:
            return ()
        now = self._clock.wall()
        since = now - now % DAY
        return spent_budgets(budgets, self._store.used_since(since), since)

    def _dismissed(self) -> frozenset[str]:
        marks = self._store.inbox_marks()
        return frozenset(mark.item for mark in marks if mark.dismissed_at is not None)

    def _shown_job(self, job: str) -> dict[str, Any]:
        return as_json(self._view(self._row(job)))

    def _quarantined(self) -> list[dict[str, object]]:
        """The claims that ended jobs left held, oldest first."""
        kept = map(quarantine_from, self._store.read("quarantines"))
        repos = {repo.id: repo.name for repo in self._registry.all()}
        return [quarantine_view(each, repos.get(each.repo, each.repo)) for each in kept]

    def _poisoned(self) -> list[dict[str, object]]:
        """What was set aside until somebody looks, oldest first."""
        aside = map(poison_from, self._store.read("poisons"))
        repos = {repo.id: repo.name for repo in self._registry.all()}
        return [poison_view(each, repos.get(each.repo, each.repo)) for each in aside]
