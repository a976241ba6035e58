"""Many jobs that are looked at together are told what each of them would be alone."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from forge_actors.domain.capacity import Offer, tokens_for
from forge_actors.domain.claims import parse_claim
from forge_actors.domain.jobs import Job
from forge_actors.domain.ledger import Ledger
from forge_actors.domain.line import Line
from forge_actors.domain.place import explain, place, places
from tests.domain.making import make_capacity

CLAIMS = ("write:repo-content:*", "read:workspace", "write:path:a", "write:path:b")
PLAIN = tokens_for("repository-command", None)
KINDS = (PLAIN, tokens_for("check", None), tokens_for("agent-run", "local"))

jobs = st.lists(
    st.tuples(
        st.sampled_from((*CLAIMS, "")),
        st.sampled_from(KINDS),
        st.integers(0, 3),  # its priority
        st.floats(0.0, 40.0),  # since when it waits
        st.booleans(),  # it is held
        st.booleans(),  # it may be isolated
    ),
    max_size=8,
)


@given(jobs, st.integers(0, 3), st.sampled_from([1, 2, 8]), st.booleans())
@settings(max_examples=150, deadline=None)
def test_what_jobs_wait_for_is_the_same_together(
    wanted: list[tuple[str, tuple[str, ...], int, float, bool, bool]],
    running: int,
    workers: int,
    isolates: bool,
) -> None:
    ledger = Ledger("repo", workers=workers, isolates=isolates, overtake_after=30.0)
    for number, (claim, tokens, priority, since, held, may) in enumerate(wanted):
        claims = (parse_claim(claim, checkout="/c"),) if claim else ()
        job = Job(
            id=f"j{number}",
            repo="repo",
            kind="repository-command",
            priority=priority,
            claims=claims,
            tokens=tokens,
            queued_at=since,
            held_at=40.0 if held else None,
            isolatable=may,
        )
        ledger.add(job, (), since)
    for _ in range(running):
        ledger.dispatch(PLAIN, 41.0)
    for now in (42.0, 60.0, 90.0):
        together = explain(ledger, [*ledger.jobs, "gone"], now)
        apart = {name: explain(ledger, [name], now)[name] for name in ledger.jobs}
        # How many are before one is counted only for one alone.
        assert together == {
            name: structs.replace(waits, ahead=0) for name, waits in apart.items()
        }


offers = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c"]),
        st.sampled_from(KINDS),
        st.floats(0.0, 50.0),
        st.none() | st.integers(0, 3),
    ),
    max_size=8,
)


@given(offers, st.integers(0, 2), st.sampled_from([20.0, 1000.0]))
@settings(max_examples=150, deadline=None)
def test_what_offers_lack_is_the_same_together(
    wanted: list[tuple[str, tuple[str, ...], float, int | None]],
    taken: int,
    overtake_after: float,
) -> None:
    capacity = make_capacity(
        workers=2, local=0, active_repositories=2, overtake_after=overtake_after
    )
    for number in range(taken):
        capacity.take(f"grant{number}", f"r{number}", PLAIN)
    line = Line({})
    asked = [
        (Offer(repo, f"{repo}{number}", tokens, 2, since), ahead, since)
        for number, (repo, tokens, since, ahead) in enumerate(wanted)
    ]
    for repo in ("a", "b", "c"):
        own = {offer.tokens: offer for offer, _, _ in asked if offer.repo == repo}
        line.put(repo, list(own.values()), 50.0)

    def jobs_of(grants: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(f"job of {grant}" for grant in grants)

    together = places(asked, capacity, line, 60.0, jobs_of)
    apart = [place(*one, capacity, line, 60.0, jobs_of) for one in asked]
    assert together == apart
