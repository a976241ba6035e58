"""What repositories bring along, on a real service: a person decides."""

from __future__ import annotations

import json
import shlex
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.service import LiveService

FORGE = shlex.join([sys.executable, "-m", "forge_actors"])
FILE = """\
[[template]]
name = "say"
parameters = { text = { default = "hello" } }
job = { argv = ["printf", "%s", "${text}"] }

[[template]]
name = "push"
job = { argv = ["true"], effects = ["push"] }

[[schedule]]
name = "tick"
manual = true
job = { argv = ["true"] }
"""


def test_a_person_trusts_it_and_a_job_uses_it(service: LiveService) -> None:
    app = service.add("app")
    folder = app / ".forge"
    folder.mkdir()
    file = folder / "work.toml"
    file.write_text(FILE)
    shown = service.cli("repo", "trust", "app")
    assert (shown.status, '+name = "say"' in shown.out) == (3, True)
    assert "nobody has trusted it" in service.cli("repo", "show", "app").out
    assert service.cli("submit", "--template", "say", "--repo", app).status == 2

    # A job cannot, whatever its person could.
    tries = f"{FORGE} repo trust app --yes; {FORGE} repo trust app --remove"
    job = service.bash("app", f"{tries}; true")
    service.end_of(job)
    assert service.log(job, "--stderr").count(b"a person can") == 2
    assert service.json("template", "list") == []

    service.cli("repo", "trust", "app", "--yes", status=0)
    service.kill()
    file.write_text(FILE.replace("%s", "changed %s"))
    assert "trust" not in service.cli("inbox", status=0).out
    service.start()
    # It was noticed at the start, and nothing of it holds.
    assert service.until(None, "repository_trust_differs").data["differs"]
    [item] = service.json("inbox")["items"]
    assert (item["kind"], item["repo"]) == ("trust", "app")
    assert "is other than what was trusted" in service.cli("repo", "show", "app").out
    shown = service.cli("repo", "trust", "app", "--show", status=0)
    assert "-job = " in shown.out
    assert "+job = " in shown.out
    submit = ("submit", "--repo", "app", "--template")
    job = service.cli(*submit, "say", "--set", "text=$(reboot)", status=0).out.strip()
    service.end_of(job)
    assert service.log(job) == b"$(reboot)"
    service.cli("schedule", "run", "app.tick", status=0)

    # What it says that it does to the outside waits for a person, also from a job.
    again = f"{FORGE} {' '.join(submit)} push; {FORGE} {' '.join(submit)} say --json"
    made = service.log(service.end_of(service.bash("app", again))["id"]).decode()
    first, _, rest = made.partition("\n")
    assert service.show(first)["state"] == "waiting_for_approval"
    said = service.end_of(json.loads(rest)["id"])
    assert (said["state"], said["origin"]) == ("succeeded", "template:say")

    service.terminate()
    assert "trust" in service.cli("inbox", status=0).out
    assert "is other than what was trusted" in service.cli("repo", "show", "app").out
    service.start()
    service.cli("repo", "trust", "app", "--remove", status=0)
    assert service.json("schedule", "list") == []
    assert service.json("template", "list") == []
