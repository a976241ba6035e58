"""`quarantine` in front of a service, and without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import trio

from forge_actors.domain.changes import Quarantined
from forge_actors.domain.claims import Claim
from forge_actors.domain.events import Event
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.domain.quarantine import Quarantine
from forge_actors.runtime.runtime import open_runtime
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def kept(job: str) -> dict[str, Any]:
    return {
        "job": job,
        "repo": "app",
        "attempt": 1,
        "claims": ["write:path:src"],
        "pids": [4001, 4002],
        "reason": "the node agent ended",
        "since": "1970-01-01T00:00:30.000Z",
    }


def line(job: str) -> str:
    return (
        f"{job}  app  write:path:src: process 4001 4002, since"
        " 1970-01-01T00:00:30.000Z (the node agent ended)\n"
    )


async def test_kept_claims_are_listed_and_freed_only_with_yes(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job, other = [await shell.submit() for _ in range(2)]
        empty = (0, "", "forge-actors: no claims are kept\n")
        assert await shell("quarantine", "list") == empty
        control.kept[job] = kept(job)
        assert await shell("quarantine", "list") == (0, line(job), "")
        _, out, _ = await shell("quarantine", "list", "--json")
        assert json.loads(out) == [kept(job)]
        assert f"  {line(job)}" in (await shell("status"))[1]

        status, out, err = await shell("quarantine", "release", job)
        assert (status, out) == (3, line(job))
        assert "nothing was freed" in err
        assert control.kept
        status, out, err = await shell("quarantine", "release", other, "--yes")
        assert (status, out) == (3, "")
        assert f"no claims are kept for what job {other} left" in err
        assert await shell("quarantine", "release", other) == (status, out, err)

        freed = await shell("quarantine", "release", job, "--yes", "--json")
        assert (freed[0], json.loads(freed[1])) == (0, {"released": True, **kept(job)})
        assert control.kept == {}
        assert await shell("quarantine", "list") == empty


async def test_what_is_given_to_a_release_is_read_strictly(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        for words in ((), ("release",), ("release", "nowhere", "--yes"), ("free", "x")):
            status, out, err = await shell("quarantine", *words)
            assert (status, out) == (2, ""), words
            assert err.startswith("forge-actors: "), words


async def test_without_a_service_they_are_listed_and_stay(
    tmp_path: Path, shell: Shell
) -> None:
    folder = tmp_path / "app"
    await trio.run_process(["git", "init", "-q", str(folder)])
    async with open_runtime(tmp_path) as runtime:
        await runtime.add_repository(folder)
        job = (await runtime.submit("app", ["true"])).id
        await runtime.control.wait([job])
        store = runtime.control._store
        [repo] = runtime.control._registry.all()
        left = Quarantine(
            job,
            repo.id,
            1,
            1,
            (Claim("write", "path", "src"),),
            tuple(ProcessIdentity("another boot", pid, 1) for pid in (4001, 4002)),
            "the node agent ended",
            30.0,
        )
        event = Event("job_quarantined", 30.0, repo.id, job)
        await store.save([Quarantined(left, event)]).wait()
    status, out, err = await shell("quarantine", "list")
    assert (status, out) == (0, line(job))
    assert "no service runs" in err
    assert f"  {line(job)}" in (await shell("status"))[1]
    for options in ((), ("--yes",)):
        status, out, err = await shell("quarantine", "release", job, *options)
        assert (status, out) == (4, "")
        assert "no service runs" in err
    assert (await shell("quarantine", "list"))[1] == line(job)
