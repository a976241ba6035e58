"""`usage`: what agents used, as people read it, with a service and without one."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import NAMES, install

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService


def test_it_is_told_as_a_table_and_what_is_unknown_is_no_number(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service("")
    folder = service.root / "bin"
    for name in NAMES:
        install(folder, name)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    service.start()
    service.add("app")
    empty = service.cli("usage", status=0)
    assert (empty.out, "no agent has used" in empty.err) == ("", True)
    submitted = [
        service.submit("--repo", "app", "--agent", name, "--prompt", "Go.")
        for name in NAMES
    ]
    assert {end["state"] for end in service.wait(*submitted)} == {"succeeded"}
    told = service.cli("usage", "--by", "agent", status=0).out
    head, *lines = (line.split() for line in told.splitlines())
    assert head == ["AGENT", "ATTEMPTS", "INPUT", "CACHED", "OUTPUT", "COST"]
    rows = {line[0]: line[1:] for line in lines}
    assert rows["codex"] == ["1", "120", "5", "7", "?"]
    assert rows["copilot"] == ["1", "120", "?", "7", "?"]
    assert rows["all"][0] == "3"
    assert rows["claude"][-1] == "$0.0008", "little is not nothing"
    assert rows["all"][-1].startswith(">=$")
    attempts = service.cli("usage", "--by", "attempt", status=0).out.splitlines()
    assert {line.split()[0] for line in attempts[1:]} == {
        "all",
        *(f"{job[-6:]}.1" for job in submitted),
    }
    served = service.json("usage", "--by", "job", "--since", "1d")
    assert {each["key"] for each in served["groups"]} == set(submitted)
    refused = service.cli("usage", "--since", "soon")
    assert (refused.status, "since" in refused.err) == (2, True)
    days = service.json("usage")
    service.cli("stop", status=0)
    offline = service.cli("usage", "--by", "agent", status=0)
    assert offline.out == told
    assert "this is what its store holds" in offline.err
    assert service.json("usage") == days
