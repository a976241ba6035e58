"""Many callers at the same moment."""

from __future__ import annotations

import subprocess
from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from forge_actors.domain.events import EventView
from forge_actors.domain.history import History
from tests.acceptance.bench import PATIENCE
from tests.acceptance.service import PROGRAM

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

CALLERS = 50
LIMITS = {"workers": 3, "agents": 3, "provider:local": 2, "provider:other": 1}


def test_no_limit_is_passed_by_fifty_that_submit_at_once(
    make_service: Callable[[str], LiveService],
) -> None:
    """Q-13: neither that of all workers nor that of a provider, at no moment."""
    service = make_service(
        "[limits]\nworkers = 3\nagents = 3\n"
        "[providers.local]\nlimit = 2\n[providers.other]\nlimit = 1\n"
    )
    service.start()
    service.add("app")
    submit = [PROGRAM, "--home", str(service.home), "submit", "--repo", "app"]
    local, other = (["--provider", name] for name in ("local", "other"))
    kinds = (local, local, other, local, local, [])
    gate = service.gate()
    callers = [
        subprocess.Popen(
            [*submit, *kinds[n % 6], "--read-only", "--", "bash", "-c", gate.wait],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            cwd=service.root,
        )
        for n in range(CALLERS)
    ]
    jobs = [caller.communicate(timeout=PATIENCE)[0].decode() for caller in callers]
    assert [caller.returncode for caller in callers] == [0] * CALLERS
    assert service.json("status")["capacity"]["workers"]["used"] == 3
    gate.open()
    ends = service.wait(*(job.strip() for job in jobs))
    assert [end["state"] for end in ends] == ["succeeded"] * CALLERS
    assert len({end["id"] for end in ends}) == CALLERS
    history, peaks = History(), Counter[str]()
    for line in service.cli(
        "events", "--json", "--after", "0", status=0
    ).out.splitlines():
        history.apply(msgspec.json.decode(line, type=EventView))
        for kind, held in history.tokens.items():
            peaks[kind] = max(peaks[kind], len(held))
    # Each was felt, and none passed.
    assert peaks == LIMITS
