"""Controllers of a real service, with a program that plays an agent."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import LiveService

#: Each turn says how it ends: another one, a wait, and that nothing is left to do.
TURN = """\
read turn < {count} || turn=0
turn=$((turn + 1)); echo $turn > {count}
case $turn in
1) how=continue_immediately ;;
2) how=wait ;;
*) how=goal_complete ;;
esac
exec {python} -m forge_actors controller tell $how --note "turn $turn" --state $turn
"""


def test_a_session_goes_on_when_a_job_ends_until_its_goal_is_reached(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, fake = claude
    count, script = service.root / "count", service.root / "turn.sh"
    count.write_text("0\n")
    script.write_text(TURN.format(count=count, python=sys.executable))
    fake.play("success", text="It is half done.")
    begun = service.end_of(
        service.submit("--repo", "app", "--agent", "claude", "--prompt", "Go.")
    )
    scene = json.dumps({"name": "echoes", "runs": f"sh {script}"})
    add = ("controller", "add", "fixer", "--job", begun["id"], "--prompt")
    service.cli(*add, f"Go on.\nscene: {scene}", status=0)
    wakes = ("--wake", "fixer", "--repo", "app")
    service.cli("schedule", "add", "then", "--on", "ended:tests", *wakes, status=0)
    service.cli("schedule", "add", "now", "--manual", *wakes, status=0)
    shown = service.json("schedule", "show", "then")["definition"]
    assert (shown["shadow"], shown["wake"], shown["job"]) == (True, "fixer", {})
    assert (shown["max_failures"], shown["cooldown"], shown["backoff"]) == (3, 600, 600)
    service.cli("schedule", "edit", "then", "--no-shadow", status=0)
    events = service.follow()
    service.submit("--repo", "app", "--name", "tests", "--", "true")
    turns = []
    for by in ("schedule", "agent"):
        woken = next(e for e in events if e.kind == "controller_woken")
        assert (woken.data["by"], woken.data["outcome"]) == (by, "dispatched")
        assert woken.job is not None
        turns.append(service.end_of(woken.job))
        assert next(e for e in events if e.kind == "controller_rests").job == woken.job
    # They speak in one session, and no person stands for them.
    session = begun["agent"]["session"]
    assert [turn["agent"]["session"] for turn in turns] == [session, session]
    assert [turn["origin"] for turn in turns] == ["schedule:then", "continuation:fixer"]
    assert turns[0]["effects"]["automated"]
    assert "turn 1 of 8" in " ".join(turns[0]["agent"]["text"].split())
    # A turn that is to be is live once a release is started that knows of it.
    activate = ("schedule", "activate", "now")
    service.cli(*activate, status=0)
    assert service.json("schedule", "show", "now")["definition"]["shadow"]
    service.kill()
    service.start()
    activated = next(e for e in service.events() if e.kind == "schedule_activated")
    assert activated.data["schedule"] == "now"
    assert not service.json("schedule", "show", "now")["definition"].get("shadow")
    shown = service.json("controller", "show", "fixer")
    assert (shown["state"], shown["rounds"]) == ("active", 2)
    job = service.cli("controller", "wake", "fixer", status=0).out.strip()
    assert service.end_of(job)["state"] == "succeeded"
    done = next(e for e in service.follow() if e.kind == "controller_done")
    assert done.data["reason"] == "turn 3"
    assert "has done its work" in service.cli("controller", "wake", "fixer").err
    assert [
        w["state"] for w in service.json("controller", "show", "fixer")["wakes"]
    ] == [*("rejected", "dispatched", "dispatched", "dispatched")]
