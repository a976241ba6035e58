"""Goals of a real service that is killed: an agent that gets there, and one that does
not."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tests.acceptance.bench import wait_until_ended

if TYPE_CHECKING:
    from forge_actors.testing.agents import FakeAgent
    from tests.acceptance.service import LiveService

GOAL = """
[workflow]
kind = "goal"
repo = "app"
[goal]
rounds = 5
[act.job]
agent = "claude"
argv = []
prompt = '''
Mend it.
{prompt}
'''
[check.job]
argv = ["sh", "-c", '''{check}''']
"""


def scene(**fields: Any) -> str:
    """What the program that plays the agent goes by, in its prompt."""
    return f"scene: {json.dumps({'name': 'success', **fields})}"


def test_an_agent_mends_in_the_third_round_whatever_is_killed(
    claude: tuple[LiveService, FakeAgent],
) -> None:
    service, _ = claude
    gate, file = service.root / "gate", service.root / "mend.toml"
    os.mkfifo(gate)
    # Each round does what the check before it has printed: only the third one mends.
    again = scene(file="two", gate=str(gate))
    check = f"test -e three && exit; if test -e two; then echo '{scene(file='three')}'"
    check += f"; else echo '{again}'; fi; exit 1"
    file.write_text(GOAL.format(prompt=scene(file="one"), check=check))
    key = service.cli("workflow", "run", str(file), status=0).out.strip()
    events = service.follow()
    resumed = next(
        e for e in events if e.kind == "agent_session" and e.data["how"] == "resumed"
    )
    pid = next(
        e.data["pid"]
        for e in service.follow()
        if (e.kind, e.job) == ("job_running", resumed.job)
    )
    service.kill()
    gate.write_bytes(b"")
    assert wait_until_ended(pid)
    service.start()
    done = service.cli("workflow", "wait", "mend", status=0).out
    assert "succeeded: the check passed in round 3" in done
    assert "rounds    3 of 5, " in done
    view = service.json("workflow", "show", key)
    assert [(step["name"], step["tries"]) for step in view["steps"]] == [
        (f"{role}-{number}", 1) for number in (1, 2, 3) for role in ("act", "check")
    ]
    jobs = service.wait(*(step["job"] for step in view["steps"]))
    assert len(service.json("jobs")) == 6
    assert len({job["worktree"]["path"] for job in jobs}) == 1
    assert len({job["agent"]["session"] for job in jobs[::2]}) == 1
    assert {job["work"] for job in jobs} == {key}
    changed = service.cli("diff", jobs[0]["id"], "--name-only", status=0).out.split()
    assert changed == ["one", "three", "two"]

    # One that changes nothing is not asked for ever.
    file.write_text(GOAL.format(prompt="", check="echo red; exit 1"))
    words = ("workflow", "run", str(file), "--name", "stuck", "--follow")
    done = service.cli(*words, status=1).out
    assert "human_attention_required: it goes in circles" in done
    assert (
        "workflow stuck needs somebody: it goes in circles" in service.cli("inbox").out
    )
    service.kill()
    assert (
        "workflow stuck needs somebody: it goes in circles" in service.cli("inbox").out
    )
