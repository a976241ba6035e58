"""What is left out, which are drawn, how sure that makes us, and the page of it."""

from __future__ import annotations

from collections import Counter

import pytest

from mutation.leaving import left_out
from mutation.mutants import Mutant
from mutation.report import KINDS, explanations, page
from mutation.sampling import Share, draw


def mutant(was: str, now: str, argument: str = "", *within: str) -> Mutant:
    return made("claims", 1, was, now, argument, within)


def made(
    module: str,
    number: int,
    was: str = "a + b",
    now: str = "a - b",
    argument: str = "",
    within: tuple[str, ...] = (),
) -> Mutant:
    name = f"forge_actors.domain.{module}.xǁClaimǁmeets__mutmut_{number}"
    path = f"forge_actors/domain/{module}.py"
    return Mutant(name, path, 7, was, now, argument, within)


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (mutant("a < b", "a <= b"), None),
        (mutant('"queued"', '"QUEUED"'), None),
        (mutant('"utf-8"', '"XXutf-8XX"'), None),
        (mutant('"on" if a else "off"', '"on" if (a) or True else "off"'), None),
        (mutant('f"made-{wall}"', "None"), None),
        (mutant('note("job", text)', "note(text)", '"job"'), None),
        (mutant('"it is gone"', '"IT IS GONE"'), "words"),
        (mutant("say(f'{a} of {b}')", "say(None)", "f'{a} of {b}'"), "words"),
        (mutant("say(why='no job')", "say(why=None)", "why='no job'"), "words"),
        (mutant("say(a, 'no'\n' job')", "say(a)", "'no'\n' job'"), "words"),
        (mutant("log.error(text, job)", "log.error(text, None)", "job"), "words"),
        (mutant('"</g>"', '"</G>"'), "words"),
        (mutant('"file"', '"FILE"', "", "Raise", "Call"), "words"),
        (mutant('"utf-8"', '"UTF-8"'), "codecs"),
        (mutant("is not", "is", "", "Assert", "Comparison"), "checks"),
        (mutant("True", "False", "", "Call", "strict="), "checks"),
        (mutant("zip(a, b, strict=True)", "zip(a, b)", "strict=True"), "checks"),
        (mutant("False", "True", "", "stub", "Parameters"), "protocols"),
        (mutant("a + b", "a - b", "", "cast()", "Arg"), None),
        (mutant('"int"', '"INT"', "", "cast()", "Arg"), "types"),
        (mutant('cast("Job", a)', "cast(None, a)", '"Job"'), "types"),
    ],
)
def test_what_no_test_should_look_at_is_left_out(
    broken: Mutant, why: str | None
) -> None:
    assert left_out(broken) == why


def test_a_sample_has_its_share_of_each_module_and_its_seed_alone_decides() -> None:
    modules = {
        "large": [made("large", number) for number in range(90)],
        "small": [made("small", number) for number in range(9)],
        "tiny": [made("tiny", 0)],
        "empty": [],
    }
    first = draw(modules, 20, seed=3)
    assert {path: len(each) for path, each in first.items()} == {
        "large": 18,
        "small": 2,
        "tiny": 1,
        "empty": 0,
    }
    assert draw(modules, 20, seed=3) == first != draw(modules, 20, seed=4)
    assert draw({**modules, "large": []}, 20, seed=3)["tiny"] == first["tiny"]
    assert draw(modules, 40, seed=3)["large"][:18] == first["large"]


def test_an_interval_is_wilsons() -> None:
    # R. G. Newcombe, Two-sided confidence intervals, Stat. Med. 17, 1998, table I.
    share = Share(81, 263)
    assert (share.low, share.high) == pytest.approx((0.2553, 0.3662), abs=5e-5)
    assert (Share(0, 10).low, Share(10, 10).high) == pytest.approx((0.0, 1.0))
    assert Share(0, 10).high == pytest.approx(0.2775, abs=5e-5)
    assert (Share(0, 0).low, Share(0, 0).high) == (0.0, 1.0)


def test_the_page_counts_by_room_and_names_each_survivor() -> None:
    rooms = ("forge_actors/domain", "forge_actors/actors")
    verdicts = [
        (made("claims", 1), "killed"),
        (made("claims", 2), "timeout"),
        (made("claims", 3), "survived"),
        (made("order", 4), "no tests"),
    ]
    left = {room: Counter({"words": 2}) for room in rooms}
    text = page(verdicts, left, dict.fromkeys(rooms, 1234), "4 mutants, seed 1")
    assert "| `forge_actors/domain` | 1,234 | 2 | 4 | 2 | 1 | 1 | 1 | 50.0% (" in text
    assert "`forge_actors/actors`" not in text, "nothing of it was tried"
    survivor = "- `domain.claims.Claim.meets`, line 7: `a + b` to `a - b`: survived"
    assert survivor in text.splitlines()
    assert "domain.order.Claim.meets" in text


def test_each_explanation_is_of_a_kind_and_says_why() -> None:
    for (place, was, now), (kind, reason) in explanations().items():
        assert was != now, place
        assert kind in KINDS
        assert reason, place
