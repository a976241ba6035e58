"""May this process still write? Every reason, and the order in which they count."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest
from msgspec import Struct, structs

from forge_actors.domain.changes import Noted
from forge_actors.domain.errors import WriterFenced
from forge_actors.domain.events import Event
from forge_actors.domain.fence import (
    ACTIONS,
    REASONS,
    Authority,
    Claim,
    may_write,
)
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.ownership import Owner, fenced
from forge_actors.testing.made_changes import dispatched, ended, job, ran

if TYPE_CHECKING:
    from collections.abc import Callable

    from forge_actors.domain.changes import Change
    from forge_actors.domain.fence import Reason

AUTHORITY = Authority(revision=4, token_digest="d1", release="1.0-aa", protocol=1)
OWNER = Owner(7, "runtime_a", ProcessIdentity("boot", 100, 5), "1.0-aa", 9.0)
CLAIM = Claim("/home", "runtime_a", pid=100, epoch=7, authority=AUTHORITY)


class World(Struct, frozen=True):
    """Everything that is looked at, as it is while nothing is wrong."""

    claim: Claim | None = CLAIM
    owner: Owner | None = OWNER
    authority: Authority | None = AUTHORITY
    alive: bool = True

    def reason(self) -> Reason | None:
        return may_write(
            self.claim, self.owner, self.authority, home="/home", owner_alive=self.alive
        )

    def with_claim(self, **changes: object) -> World:
        assert self.claim is not None
        return structs.replace(self, claim=structs.replace(self.claim, **changes))

    def with_owner(self, **changes: object) -> World:
        assert self.owner is not None
        return structs.replace(self, owner=structs.replace(self.owner, **changes))

    def with_authority(self, **changes: object) -> World:
        authority = structs.replace(self.authority or AUTHORITY, **changes)
        return structs.replace(self, authority=authority)


#: What is wrong where a reason is the answer.
WRONG: dict[Reason, Callable[[World], World]] = {
    "runtime_write_claim_unbound_while_authority_present": lambda world: (
        structs.replace(world, claim=None)
    ),
    "controller_home_mismatch": lambda world: world.with_claim(home="/other"),
    "runtime_authority_appeared_after_unmanaged_bind": lambda world: world.with_claim(
        authority=None
    ).with_authority(),
    "runtime_owner_missing": lambda world: structs.replace(world, owner=None),
    "runtime_owner_dead": lambda world: structs.replace(world, alive=False),
    "runtime_instance_fenced": lambda world: world.with_owner(instance="runtime_b"),
    "runtime_owner_pid_fenced": lambda world: world.with_claim(pid=101),
    "runtime_release_authority_missing": lambda world: structs.replace(
        world, authority=None
    ),
    "release_authority_revision_fenced": lambda world: world.with_authority(revision=5),
    "release_fencing_token_mismatch": lambda world: world.with_authority(
        token_digest="d2"
    ),
    "release_id_fenced": lambda world: world.with_authority(release="1.0-bb"),
    "worker_protocol_fenced": lambda world: world.with_authority(protocol=2),
}


def test_who_has_the_home_may_write() -> None:
    assert World().reason() is None


@pytest.mark.parametrize("reason", REASONS)
def test_each_reason_is_the_answer_to_what_is_wrong(reason: Reason) -> None:
    assert WRONG[reason](World()).reason() == reason


@pytest.mark.parametrize(("earlier", "later"), list(itertools.combinations(REASONS, 2)))
def test_of_two_reasons_the_earlier_one_counts(earlier: Reason, later: Reason) -> None:
    assert WRONG[earlier](WRONG[later](World())).reason() == earlier


def test_another_epoch_of_the_same_instance_is_another_owner() -> None:
    """As after a store was restored that is older than its owner."""
    for epoch in (6, 8):
        assert World().with_owner(epoch=epoch).reason() == "runtime_instance_fenced"


def test_where_no_release_was_ever_activated_only_the_owner_counts() -> None:
    unmanaged = structs.replace(World().with_claim(authority=None), authority=None)
    assert unmanaged.reason() is None
    assert unmanaged.with_claim(epoch=6).reason() == "runtime_instance_fenced"


@pytest.mark.parametrize("claim", [None, structs.replace(CLAIM, home="/other")])
def test_where_nobody_ever_was_the_owner_others_may_write(claim: Claim | None) -> None:
    nobody = World(claim, owner=None, authority=None)
    assert nobody.reason() is None
    assert structs.replace(nobody, owner=OWNER).reason() is not None
    assert structs.replace(nobody, authority=AUTHORITY).reason() is not None


def test_whoever_took_the_home_may_not_write_where_it_has_no_owner() -> None:
    gone = World(owner=None, authority=None).with_claim(authority=None)
    assert gone.reason() == "runtime_owner_missing"


CHANGES: dict[str, list[Change]] = {
    "consume_queue": [dispatched(), ran()],
    "renew_lease": [ran()],
    "write_process_terminal": [job(), ended()],
    "scheduler_write": [job(), Noted(Event("x", 1.0))],
}


@pytest.mark.parametrize(("action", "changes"), CHANGES.items())
def test_what_is_refused_names_the_action_and_the_reason(
    action: str, changes: list[Change]
) -> None:
    younger = structs.replace(OWNER, epoch=8, instance="runtime_b")
    error = fenced(OWNER, younger, changes)
    assert isinstance(error, WriterFenced)
    assert str(error) == f"WRITER_FENCED:{action}:runtime_instance_fenced"
    assert (error.code, error.exit_code) == ("WRITER_FENCED", 75)
    assert error.action in ACTIONS


def test_there_are_fourteen_actions_and_each_reason_has_a_test() -> None:
    assert len(ACTIONS) == len(set(ACTIONS)) == 14
    assert list(WRONG) == list(REASONS)
