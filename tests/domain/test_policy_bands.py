"""A timeline tells while which policy held."""

from __future__ import annotations

from forge_actors.domain.policies import Policy
from forge_actors.domain.policy_changes import policy_set
from forge_actors.domain.timeline_bands import Bands


def test_each_policy_but_the_normal_one_is_a_stretch() -> None:
    bands = Bands(100.0, 200.0)
    before = Policy()
    for at, policy in (
        (110.0, Policy("exclusive", "wf-1", "secret")),
        (120.0, Policy("convergence")),
        (130.0, Policy()),
        (140.0, Policy("maintenance")),
    ):
        bands.apply(policy_set(policy, before, at, policy.reason).event)
        before = policy
    assert [(b.kind, b.began, b.ended, b.reason) for b in bands.told()] == [
        ("policy", 10.0, 20.0, "exclusive for work wf-1"),
        ("policy", 20.0, 30.0, "convergence"),
        ("policy", 40.0, None, "maintenance"),
    ]
