"""A whole EPIC on GitHub: what people do meanwhile, and what becomes of each issue."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import pytest
import trio

from forge_actors.testing.github import World, serving
from tests.acceptance.bench import contents
from tests.acceptance.epic_stand import Stand

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from forge_actors.testing.github.world import Issue

TOKEN = "ghp_" + "t" * 36
#: 15 fails; 14 and 16 wait until they are let go.
IMPLEMENT = """\
env > {env}.$EPIC_ISSUE; echo $EPIC_ISSUE >> {trace}; {ring}
case $EPIC_ISSUE in 15) exit 1;; 14) {first};; 16) {second};; esac
echo x > work"""

P = ParamSpec("P")
T = TypeVar("T")


@pytest.fixture
def stand(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stand]:
    made = Stand()
    made.url = "https://github.com/octo/demo/issues/7"
    monkeypatch.setenv("GH_TOKEN", TOKEN)
    yield made
    made.close()


async def beside(call: Callable[P, T], *args: P.args, **more: P.kwargs) -> T:
    """Wait for something while GitHub answers here."""
    return await trio.to_thread.run_sync(partial(call, *args, **more))


class People:
    """The issues of an EPIC, by their numbers, and what is done to them."""

    def __init__(self) -> None:
        self.world = World()
        self.account = self.world.token(TOKEN)
        self.demo = self.world.repository("octo", "demo")
        self.issues: dict[int, Issue] = {}
        for number in (7, 8):
            self.add(number)
        for number in (17, 15, 11, 16):
            self.add(number, parent=self.issues[7])
        self.add(12, parent=self.issues[7], blockers=[self.issues[11]])
        self.add(13, parent=self.issues[7], blockers=[self.issues[11]])
        both = [self.issues[12], self.issues[13]]
        self.add(14, parent=self.issues[7], blockers=both)

    def add(self, number: int, **more: object) -> None:
        self.issues[number] = self.world.issue(self.demo, number, **more)

    def move(self) -> None:
        """Somebody gives 17 another parent."""
        self.world.adopt(self.issues[8], self.issues[17])

    def close(self, *numbers: int) -> None:
        for number in numbers:
            self.world.close(self.issues[number])


async def test_a_whole_epic_comes_to_the_right_end_whatever_people_do_meanwhile(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    people = People()
    first, second, bell = stand.gate(), stand.gate(), stand.bell()
    script = IMPLEMENT.format(
        env=stand.root / "env",
        trace=stand.trace,
        ring=bell.ring,
        first=first.wait,
        second=second.wait,
    )
    stand.settings("1s", script, limit=3)
    async with serving(people.world) as github:
        monkeypatch.setenv("GITHUB_API_URL", github.base)
        github.troubles.after(r"/issues/7/sub_issues", people.move)
        run = stand.run()
        await beside(run.until, "#17 has changed: ")
        await beside(bell.wait, 3)
        await beside(run.until, "#11: its worker ended (status 0); ready_for_merge")
        failed = "#15: its worker ended (status 0); failed: implement"
        await beside(run.until, failed)
        # 11 is merged, 13 not needed any more, and 16 closed under its worker.
        people.close(11, 13, 16)
        people.world.rename(people.demo, "renamed")
        await beside(run.until, "#12: its worker ended (status 0); ready_for_merge")
        assert "#14: start" not in "\n".join(run.lines)
        people.close(12)
        await beside(bell.wait, 2)
        people.account.used = people.account.limit
        limited = await beside(run.until, "the graph could not be read (rate-limited)")
        assert "run it again after " in limited
        first.open()
        second.open()
        assert await beside(run.wait) == 1, run.lines
        assert stand.end == ("degraded", "snapshot-refused", "degraded")
        people.account.used = 0
        again = stand.run()
        assert await beside(again.wait) == 0, again.lines
        asked = {(each.method, each.status) for each in github.troubles.log}
    assert {method for method, _ in asked} == {"GET"}
    assert {200, 301, 403} <= {status for _, status in asked}
    assert sorted(stand.traced) == ["11", "12", "14", "15", "16"]
    for issue in (11, 12, 14, 15, 16):
        assert stand.closings(issue) == ["settled"], issue
    assert stand.claims(13) == stand.claims(17) == []
    stand.url = "https://github.com/octo/renamed/issues/7"
    found = await beside(stand.status)
    states = {child["number"]: child["state"] for child in found["children"]}
    assert states == {11: "done", 12: "done", 14: "done", 15: "held", 16: "done"}
    assert found["verdicts"]["closed"] == 4
    assert (found["repository"], found["end_reason"]) == (
        "octo/renamed",
        "nothing-admissible",
    )
    kept = b"".join(data for _, data in contents(stand.root))
    assert TOKEN.encode() not in kept, "nobody but the scheduler has it"
