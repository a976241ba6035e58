"""What becomes known of good work outside: a pushed branch, and a draft pull request.

Each is written down before it is begun and once it is done. One that was begun is never
simply done again: what is there is looked at first, so a crash in between does nothing
twice. Nothing is ever merged, and no branch is pushed by force.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal

from forge_actors.domain.epic.phases import (
    effect_of,
    not_published,
    published,
    with_effect,
)
from forge_actors.domain.epic.records import EffectDone, detail
from forge_actors.domain.errors import ForgeError, WorktreeFailed
from forge_actors.domain.github.issues import GitHubFailed
from forge_actors.domain.github.places import parse_issue_url
from forge_actors.edges.git import issue_branches

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.epic.records import Assignment, EngineState
    from forge_actors.domain.github.pulls import PullRequests
    from forge_actors.runtime.epic_settings import Effect, EpicSettings

How = Literal["begun", "done", "failed"]


class NotNow(ForgeError):
    """The work cannot go on now, and may later: run the EPIC again."""

    code = "NOT_NOW"


class Publisher:
    """Publishes the work on one issue. `save` makes a state durable, `now` is a moment
    that does not go back."""

    def __init__(
        self,
        folder: str,
        task: Assignment,
        settings: EpicSettings,
        pulls: Callable[[], PullRequests],
        save: Callable[[EngineState], None],
        now: Callable[[EngineState], str],
    ) -> None:
        self._folder = folder
        self._task = task
        self._settings = settings
        self._pulls = pulls
        self._save = save
        self._now = now

    async def publish(self, state: EngineState) -> EngineState:
        """The state once all is outside that is to be, or why that may not be.

        Raises:
            NotNow: something is in the way that may pass.
        """
        try:
            commit = await issue_branches.head(self._folder)
            if commit == state.base_commit:
                return published(state, self._now(state))  # there is nothing to show
            for effect in self._settings.effects:
                if _is_done(effect_of(state, effect), commit):
                    continue
                do = self._push if effect == "push" else self._pull_request
                state = await do(state, commit)
                told = effect_of(state, effect)
                if told is not None and told.state == "failed":
                    return not_published(state, told.detail, self._now(state))
        except WorktreeFailed as error:
            raise NotNow(str(error)) from None
        return published(state, self._now(state))

    async def _push(self, state: EngineState, commit: str) -> EngineState:
        remote, branch = self._settings.remote, state.branch
        note = partial(self._note, effect="push", commit=commit)
        there = await issue_branches.remote_commit(self._folder, remote, branch)
        if there == commit:
            return note(state, how="done", told="it was there")
        state = note(state, how="begun")
        pushed = await issue_branches.push(self._folder, remote, commit, branch)
        if pushed.ok:
            return note(state, how="done", told=f"to {remote}")
        if not pushed.rejected:
            raise NotNow(f"{branch} could not be pushed to {remote}: {pushed.words}")
        why = f"{remote} does not take {branch}: {pushed.words}"
        return note(state, how="failed", told=why)

    async def _pull_request(self, state: EngineState, commit: str) -> EngineState:
        note = partial(self._note, effect="pull_request", commit=commit)
        place = parse_issue_url(state.issue_url).place
        base, issue = self._settings.base, self._task.run_key.issue_number
        if base is not None:
            base = base.removeprefix(f"{self._settings.remote}/")
        pulls = self._pulls()
        try:
            there = await pulls.find(place, state.branch)
            if there is not None:
                return note(state, how="done", told=f"#{there} was there")
            state = note(state, how="begun")
            title = self._task.title or f"Issue #{issue}"
            words = (title, f"Closes #{issue}.\n")
            try:
                made = await pulls.open_draft(place, state.branch, base, *words)
            except GitHubFailed as error:
                # It may be there all the same, whatever the answer was.
                there = (
                    None if error.transient else await pulls.find(place, state.branch)
                )
                if there is None:
                    raise
                made = there
        except GitHubFailed as error:
            if error.transient:
                raise NotNow(str(error)) from None
            return note(state, how="failed", told=str(error))
        finally:
            await pulls.close()
        return note(state, how="done", told=f"#{made}")

    def _note(
        self,
        state: EngineState,
        *,
        effect: Effect,
        commit: str,
        how: How,
        told: str = "",
    ) -> EngineState:
        """Write down how far an effect is, before anything else."""
        done = EffectDone(effect, commit, how, detail(told))
        state = with_effect(state, done, self._now(state))
        self._save(state)
        return state


def _is_done(known: EffectDone | None, commit: str) -> bool:
    """A pull request shows what its branch is at; a push is of one commit."""
    if known is None or known.state != "done":
        return False
    return known.effect == "pull_request" or known.commit == commit
