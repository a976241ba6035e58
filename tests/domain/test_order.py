"""The order of a batch: every job after those it names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.order import batch_order


def order(*jobs: tuple[str | None, list[str]]) -> list[int]:
    return batch_order(jobs, [f"jobs[{index}]." for index in range(len(jobs))])


def test_without_names_the_order_is_that_of_the_batch() -> None:
    assert order((None, []), ("b", []), (None, ["some-id"])) == [0, 1, 2]


def test_a_job_comes_after_the_jobs_it_names_and_otherwise_as_it_came() -> None:
    assert order(("a", ["c"]), ("b", []), ("c", ["d"]), ("d", [])) == [3, 2, 0, 1]


def test_an_empty_batch_has_an_empty_order() -> None:
    assert order() == []


def test_a_job_that_names_itself_is_a_cycle() -> None:
    with pytest.raises(InvalidInput, match="is a cycle: a -> a") as caught:
        order(("b", []), ("a", ["a"]))
    assert caught.value.field == "jobs[1].after"


def test_a_cycle_is_shown_as_its_path_without_the_way_to_it() -> None:
    with pytest.raises(InvalidInput, match=r"is a cycle: b -> c -> d -> b$") as caught:
        order(("a", ["b"]), ("b", ["x", "c"]), ("c", ["d"]), ("d", ["b"]))
    assert caught.value.field == "jobs[3].after"


def test_a_name_that_somebody_waits_for_must_be_one_jobs() -> None:
    with pytest.raises(InvalidInput, match="'a' is the name of two jobs") as caught:
        order(("a", []), ("b", ["a"]), ("a", []))
    assert caught.value.field == "jobs[2].name"


def test_a_name_that_nobody_waits_for_may_be_used_again() -> None:
    assert order(("a", []), ("a", []), ("b", ["c"]), ("c", [])) == [0, 1, 3, 2]


def test_a_chain_of_ten_thousand_is_no_deeper_than_any_other() -> None:
    last = 9_999
    jobs = [(str(n), [str(n + 1)] if n < last else []) for n in range(last + 1)]
    assert order(*jobs) == list(range(last, -1, -1))


class Names(list[str]):
    """Names to run after that count how often one of them is read."""

    read = 0

    def __iter__(self):  # type: ignore[no-untyped-def]
        for name in super().__iter__():
            Names.read += 1
            yield name

    def __contains__(self, name: object) -> bool:
        Names.read += len(self)
        return super().__contains__(name)


def test_one_job_after_ten_thousand_reads_each_of_its_names_a_few_times() -> None:
    count = 10_000
    Names.read = 0
    names = [str(n) for n in range(count)]
    assert order((None, Names(names)), *[(name, []) for name in names])[-1] == 0
    assert Names.read <= 3 * count


def test_a_batch_in_which_all_have_one_name_looks_at_each_job_a_few_times() -> None:
    count = 5_000
    Names.read = 0
    assert len(order(*[("build", Names(["x"])) for _ in range(count)])) == count
    assert Names.read <= 3 * count


@given(st.lists(st.sets(st.integers(0, 11)), max_size=12))
def test_an_order_keeps_every_dependency_or_there_is_a_cycle(
    graph: list[set[int]],
) -> None:
    after = [sorted(each & set(range(len(graph)))) for each in graph]
    jobs = [(str(n), [str(d) for d in each]) for n, each in enumerate(after)]
    placed: set[int] = set()
    while ready := {n for n in range(len(after)) if placed.issuperset(after[n])}:
        if ready <= placed:
            break
        placed |= ready
    if len(placed) < len(after):
        with pytest.raises(InvalidInput, match="is a cycle"):
            order(*jobs)
        return
    place = {n: position for position, n in enumerate(order(*jobs))}
    assert sorted(place) == list(range(len(after)))
    assert all(place[d] < place[n] for n, each in enumerate(after) for d in each)
