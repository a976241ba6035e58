"""What must hold of the accounts of providers, by what was saved."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.actors.isolating import IN_CHECKOUT
from forge_actors.domain.accounts import RETURN_GAP, RETURN_JITTER, RETURN_SECONDS
from forge_actors.domain.isolation import own_worktree
from forge_actors.domain.scopes import provider_in
from forge_actors.testing.simulation.plan import Operation

if TYPE_CHECKING:
    from forge_actors.domain.accounts import Account
    from forge_actors.domain.changes import AccountChanged, JobDispatched, JobRequeued
    from forge_actors.testing.simulation.books import Case
    from forge_actors.testing.simulation.world import World

#: Seconds between two dispatches that two grants with the right distance may lack.
TOLERANCE = 0.01


def waits_for_checkout(case: Case, change: JobRequeued) -> bool:
    """Whether it was to have a worktree by itself, and there can be none."""
    message = "" if change.error is None else change.error.message
    return message.endswith(IN_CHECKOUT) and own_worktree(case.job) in case.claims


class AccountRules:
    """Judges by books of its own: the last of each provider."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.accounts: dict[str, Account] = {}
        #: By provider: the epoch that wrote it, and the last dispatch since.
        self._epochs: dict[str, int] = {}
        self._last: dict[str, tuple[int, str, float]] = {}

    def changed(self, change: AccountChanged, epoch: int) -> None:
        account = change.account
        known = self.accounts.get(account.provider)
        if account.open and (known is None or known.open):
            self._world.fail("closed, then opened", account.provider)
        self.accounts[account.provider] = account
        self._epochs[account.provider] = epoch
        self._last.pop(account.provider, None)
        if not account.open and account.retry_at is None:
            # Somebody sees to it.
            resume = Operation(0.0, "resume", account.token, True)
            self._world.timers.after(
                self._world.plan.person, lambda: self._world.clients.do(resume)
            )

    def closed(self, tokens: tuple[str, ...]) -> bool:
        """Whether a job with these tokens waits for an account."""
        account = self.accounts.get(provider_in(tokens) or "")
        return account is not None and not account.open

    def judge(self, case: Case, change: JobDispatched, epoch: int) -> None:
        """Nothing starts on a closed account but one that tries, and what returns to
        an open one comes one by one."""
        provider = provider_in(case.tokens)
        account = self.accounts.get(provider or "")
        if account is None or provider is None:
            return
        known = self._epochs[provider] == epoch
        last = self._last.get(provider)
        self._last[provider] = (epoch, case.job, change.at)
        same = last is not None and last[0] == epoch
        if not account.open:
            due = account.retry_at
            early = due is not None and change.at < due
            if due is None or account.stated or (early and known):
                self._fail("closed means closed", case, account)
            elif last is not None and same:
                other = self._world.books.cases[last[1]]
                if other.reserved and other is not case:
                    self._fail("one job tries", case, account)
            return
        recent = change.at < account.since + RETURN_SECONDS
        if last is not None and same and recent and known:
            least = RETURN_GAP * (1 - RETURN_JITTER) - TOLERANCE
            if change.at - last[2] < least:
                self._fail("no herd returns", case, account)

    def judge_requeue(self, case: Case, change: JobRequeued) -> bool:
        """Whether the attempt was refused; it is said so exactly then."""
        refused = change.refused - case.refused
        if change.state == "waiting_for_approval":
            return False  # it asked, and was not refused
        process = self._world.machine.history.get((case.job, case.attempt))
        if process is None and waits_for_checkout(case, change):
            return False  # it has to do without a worktree, and never began
        told = process is not None and process.limit is not None
        if refused not in (0, 1) or (refused and not told):
            self._world.fail("refusals do not count", f"{case.job}: {change.refused}")
        case.refused = change.refused
        return bool(refused)

    def _fail(self, rule: str, case: Case, account: Account) -> None:
        self._world.fail(rule, f"{case.job} is dispatched; {account}")
