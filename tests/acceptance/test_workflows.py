"""Workflows of a real service, across its end."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.service import LiveService

RELEASE = """
[workflow]
on_failure = "continue"
[workflow.parameters]
who = "nobody"
[[step]]
name = "build"
repo = "app"
[step.job]
argv = ["sh", "-c", "echo $0 >>{built}; read _ <{gate}", "${{who}}"]
[[step]]
name = "test"
repo = "site"
after = ["build"]
retries = 1
[step.job]
argv = ["sh", "-c", "echo x >>{tested}; exit 3"]
[[step]]
name = "ask"
after = ["test"]
gate = "Ship it?"
[[step]]
name = "ship"
repo = "app"
after = ["ask"]
[step.job]
argv = ["true"]
"""


def test_each_step_runs_once_whatever_is_killed(
    service: LiveService, tmp_path: Path
) -> None:
    for name in ("app", "site"):
        service.add(name)
    built, tested, file = (tmp_path / name for name in ("built", "tested", "rel.toml"))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    file.write_text(RELEASE.format(built=built, tested=tested, gate=gate))
    words = ("workflow", "run", str(file), "--set", "who=me", "--request-id", "1")
    key = service.cli(*words, status=0).out.strip()
    events = service.follow()
    next(e for e in events if e.kind == "job_running")
    service.kill()
    file.write_text("[workflow]\n")
    service.start()
    gate.write_text("go\n")
    events = service.follow()
    asks = next(e for e in events if e.kind == "workflow_asks")
    assert asks.data == {
        "workflow": key,
        "name": "rel",
        "step": "ask",
        "reason": "Ship it?",
    }
    service.kill()
    service.start()
    [item] = service.json("inbox")["items"]
    assert item["says"] == "step ask of workflow rel asks: Ship it?"
    assert f"forge-actors workflow approve {key} ask" in item["actions"]
    assert "? ask  asking" in service.cli("workflow", "graph", "rel", status=0).out
    assert "<svg" in service.cli("workflow", "graph", "rel", "--svg", "-").out
    service.cli("workflow", "approve", "rel", "ask", status=0)
    assert service.json("inbox")["items"] == []
    done = service.cli("workflow", "wait", key[:8], status=1).out
    assert "failed: 1 of 4 failed: test" in done
    assert "failed:\n  test: job " in service.cli("workflow", "report", "rel").out
    assert built.read_text() == "me\n"
    assert tested.read_text() == "x\nx\n"
    view = service.json("workflow", "show", "rel")
    assert [step["state"] for step in view["steps"]] == [
        "succeeded",
        "failed",
        "succeeded",
        "succeeded",
    ]
    jobs = service.json("jobs")
    assert len(jobs) == 4
    assert {(job["origin"], job["work"]) for job in jobs} == {("workflow:rel", key)}


def test_a_bad_file_begins_nothing(service: LiveService, tmp_path: Path) -> None:
    service.add("app")
    file = tmp_path / "w.toml"
    step = '[[step]]\nname = "a"\nrepo = "app"\n'
    for text, said in (
        ("[workflow", "file"),
        ("[flow]\n", "flow"),
        ("[workflow]\n", "step"),
        (step, "step[0]"),
        (step + "job = {}\n", "step[0].job.argv"),
        (step + 'job = { argv = ["true"] }\nafter = ["b"]\n', "step[0].after"),
        (step + 'job = { argv = ["${x}"] }\n', "step[0].job"),
        (step + 'job = { argv = ["sh", "-c", "${x}"] }\n', "step[0].job.argv[2]"),
        (step + 'job = { argv = ["true"], cwd = "no" }\n', "step[0].job.cwd"),
        (step + 'job = { argv = ["true"], after = ["1"] }\n', "step[0].job.after"),
        (step.replace("app", "no") + 'job = { argv = ["true"] }\n', "step[0].repo"),
        (step + 'job = { argv = ["true"] }\nwhen = "x"\n', "workflow.steps[0].when"),
    ):
        file.write_text(text)
        done = service.cli("workflow", "run", str(file), status=2)
        assert f": {said}" in done.err, done.err
        assert done.err.count("\n") == 1
    assert service.json("workflow", "list") == []
    assert service.json("jobs") == []
    assert service.cli("workflow", "show", "nothing", status=2).err.count("\n") == 1
