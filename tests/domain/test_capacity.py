"""Tokens: which a job needs, how many there are, and what pressure takes away."""

from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from forge_actors.domain.capacity import ACTIVE_REPOSITORIES, tokens_for
from forge_actors.domain.jobs import Kind
from tests.domain.making import make_capacity


@pytest.mark.parametrize(
    ("kind", "provider", "tokens"),
    [
        ("repository-command", None, ("workers",)),
        ("integration", None, ("workers",)),
        ("release-gate", None, ("workers",)),
        ("check", None, ("workers", "heavy_checks")),
        ("verify-edit", None, ("workers", "heavy_checks")),
        ("agent-run", None, ("workers", "agents")),
        ("agent-run", "codex", ("workers", "agents", "provider:codex")),
        ("dispatch-task", "claude", ("workers", "agents", "provider:claude")),
        ("repository-command", "local", ("workers", "agents", "provider:local")),
        ("check", "x", ("workers", "heavy_checks", "agents", "provider:x")),
    ],
)
def test_a_job_needs_the_tokens_of_its_kind_and_of_its_provider(
    kind: Kind, provider: str | None, tokens: tuple[str, ...]
) -> None:
    assert tokens_for(kind, provider) == tokens


def test_what_is_lacking_names_the_token_its_use_and_its_holders() -> None:
    capacity = make_capacity(workers=2, heavy_checks=1)
    capacity.take("g1", "r1", ("workers", "heavy_checks"))
    [lack] = capacity.lacking("r1", ("workers", "heavy_checks"))
    assert (lack.token, lack.used, lack.limit) == ("heavy_checks", 1, 1)
    assert lack.holders == ("g1",)
    assert capacity.lacking("r1", ("workers",)) == ()


def test_a_new_repository_waits_while_the_active_ones_are_at_their_limit() -> None:
    capacity = make_capacity(active_repositories=1)
    capacity.take("g1", "r1", ("workers",))
    assert capacity.fits("r1", ("workers",))
    assert not capacity.fits("r2", ("workers",))
    [lack] = capacity.lacking("r2", ("workers",))
    assert (lack.token, lack.holders) == (ACTIVE_REPOSITORIES, ("g1",))
    capacity.give_back("g1", "r1", ("workers",))
    assert capacity.fits("r2", ("workers",))


def test_a_repository_is_active_until_its_last_token_is_back() -> None:
    capacity = make_capacity()
    capacity.take("g1", "r1", ("workers",))
    capacity.take("g2", "r1", ("workers",))
    capacity.give_back("g1", "r1", ("workers",))
    assert list(capacity.active_repositories) == ["r1"]
    capacity.give_back("g2", "r1", ("workers",))
    assert not capacity.active_repositories


def test_under_pressure_one_worker_may_run_and_no_agent() -> None:
    capacity = make_capacity(workers=4, pressure_workers=1)
    capacity.pressure = "free memory"
    assert capacity.fits("r1", ("workers", "heavy_checks"))
    assert not capacity.fits("r1", ("workers", "agents"))
    assert not capacity.fits("r1", ("workers", "agents", "provider:local"))
    capacity.take("g1", "r1", ("workers",))
    assert not capacity.fits("r1", ("workers",))
    capacity.pressure = None
    assert capacity.fits("r1", ("workers", "agents"))


def test_pressure_never_raises_a_limit() -> None:
    capacity = make_capacity(workers=1, pressure_workers=8)
    capacity.pressure = "load"
    assert capacity.limit("workers") == 1


def test_a_provider_that_the_settings_no_longer_name_has_no_tokens() -> None:
    capacity = make_capacity()
    tokens = tokens_for("agent-run", "gone")
    assert not capacity.fits("r1", tokens)
    [lack] = capacity.lacking("r1", tokens)
    assert (lack.token, lack.used, lack.limit) == ("provider:gone", 0, 0)


class Counting(RuleBasedStateMachine):
    """Grants are taken while they fit and given back in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.capacity = make_capacity(
            workers=3, heavy_checks=1, agents=2, active_repositories=2
        )
        self.grants: dict[str, tuple[str, tuple[str, ...]]] = {}
        self.made = 0

    @rule(
        repo=st.sampled_from(["r1", "r2", "r3"]),
        kind=st.sampled_from(["repository-command", "check", "agent-run"]),
        provider=st.sampled_from([None, "local"]),
    )
    def take(self, repo: str, kind: Kind, provider: str | None) -> None:
        tokens = tokens_for(kind, provider)
        lacks = self.capacity.lacking(repo, tokens)
        assert self.capacity.fits(repo, tokens) is (not lacks)
        if not lacks:
            self.made += 1
            self.grants[f"g{self.made}"] = (repo, tokens)
            self.capacity.take(f"g{self.made}", repo, tokens)

    @rule(data=st.data())
    def give_back(self, data: st.DataObject) -> None:
        if self.grants:
            holder = data.draw(st.sampled_from(sorted(self.grants)))
            self.capacity.give_back(holder, *self.grants.pop(holder))

    @rule(pressure=st.sampled_from([None, "load"]))
    def sample(self, pressure: str | None) -> None:
        self.capacity.pressure = pressure

    @invariant()
    def no_limit_is_passed_and_every_token_is_accounted_for(self) -> None:
        for kind, limit in self.capacity.limits.tokens.items():
            holders = [g for g, (_, tokens) in self.grants.items() if kind in tokens]
            assert list(self.capacity.holders(kind)) == holders
            assert self.capacity.used(kind) == len(holders) <= limit
        repos = {repo for repo, _ in self.grants.values()}
        assert set(self.capacity.active_repositories) == repos
        assert len(repos) <= 2


test_tokens_are_taken_and_given_back_without_loss = Counting.TestCase
