"""`artifact`: files of jobs, listed and fetched, with a service and without one."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.runtime.runtime import open_runtime
from tests.acceptance.service import LiveService

if TYPE_CHECKING:
    from collections.abc import Iterator

BIG = 8 << 20


@pytest.fixture(scope="module")
def service() -> Iterator[LiveService]:
    made = LiveService()
    made.start()
    made.add("app")
    yield made
    made.close()


@pytest.fixture(scope="module")
def job(service: LiveService) -> str:
    """A job that left some files, one of them not what was asked for."""
    script = (
        f"mkdir -p out/deep; echo one > out/one; echo two > out/deep/two;"
        f" head -c {BIG} /dev/zero > out/big; ln -s one out/link; chmod +x out/one;"
        " printf x > 'out/odd name\x1b[31m'; exit 3"
    )
    place = str(service.root / "app")
    words = ("--repo", place, "--cwd", place, "--artifact", "out", "--artifact", "no")
    job = service.submit(*words, "--", "sh", "-c", script)
    assert service.end_of(job)["state"] == "failed"
    return job


def get(service: LiveService, to: Path, *words: str, status: int | None = 0) -> str:
    return service.cli("artifact", "get", *words, "--to", to, status=status).err


def test_they_are_shown_with_the_job(service: LiveService, job: str) -> None:
    found = service.show(job)["artifacts"]
    assert (found["attempt"], found["state"]) == (1, "partial")
    sizes = {file["path"]: file["bytes"] for file in found["files"]}
    assert sizes == {
        "out/one": 4,
        "out/deep/two": 4,
        "out/big": BIG,
        "out/odd name\x1b[31m": 1,
    }
    assert found["bytes"] == sum(sizes.values())
    assert found["left_out"] == [
        {"path": "out/link", "reason": "it is a link"},
        {"path": "no", "reason": "nothing matches it"},
    ]
    page = service.cli("show", job, status=0).out
    assert f"partial, 4 files, {found['bytes']} bytes" in page
    assert "out/deep/two" in page
    assert "left out: out/link: it is a link" in page
    assert "\x1b" not in page


def test_they_are_listed(service: LiveService, job: str) -> None:
    done = service.cli("artifact", "list", job, status=0)
    assert "out/deep/two" in done.out
    assert "\x1b" not in done.out
    assert "left out: no: nothing matches it" in done.err
    assert service.json("artifact", "list", job) == service.show(job)["artifacts"]


def test_all_of_them_are_fetched(
    service: LiveService, job: str, tmp_path: Path
) -> None:
    to = tmp_path / "new" / "folder"
    assert f"4 files, {BIG + 9} bytes, written to {to}" in get(service, to, job)
    assert (to / "out" / "deep" / "two").read_text() == "two\n"
    assert (to / "out" / "big").read_bytes() == bytes(BIG)
    assert os.access(to / "out" / "one", os.X_OK)
    assert not os.access(to / "out" / "big", os.X_OK)
    assert len(list((to / "out").iterdir())) == 4
    # A second time nothing of it may be overwritten.
    (to / "out" / "one").write_text("mine")
    (to / "out" / "deep" / "two").unlink()
    assert "is there already; --force replaces" in get(service, to, job, status=3)
    assert not (to / "out" / "deep" / "two").exists()
    assert (to / "out" / "one").read_text() == "mine"
    get(service, to, job, "--force")
    assert (to / "out" / "one").read_text() == "one\n"


def test_some_of_them_are_fetched(
    service: LiveService, job: str, tmp_path: Path
) -> None:
    get(service, tmp_path / "a", job, "out/one", "out/deep/")
    found = [path for path in (tmp_path / "a").rglob("*") if path.is_file()]
    assert sorted(path.name for path in found) == ["one", "two"]
    refused = get(service, tmp_path / "b", job, "out/nothing", status=None)
    assert "no artifact is called 'out/nothing'" in refused
    assert not (tmp_path / "b").exists()


def test_one_goes_to_stdout(service: LiveService, job: str) -> None:
    done = service.cli("artifact", "get", job, "out/one", "--to", "-", status=0)
    assert done.raw == b"one\n"
    done = service.cli("artifact", "get", job, "out", "--to", "-", status=2)
    assert "takes one file, these are 4" in done.err
    assert done.raw == b""


def test_no_link_leads_out_of_the_folder(
    service: LiveService, job: str, tmp_path: Path
) -> None:
    to, victim = tmp_path / "to", tmp_path / "victim"
    to.mkdir()
    victim.mkdir()
    (to / "out").symlink_to(victim)
    get(service, to, job, "out/one", status=2)
    get(service, to, job, "out/one", "--force", status=2)
    assert list(victim.iterdir()) == []
    (to / "out").unlink()
    (to / "out").mkdir()
    (victim / "file").write_text("precious")
    (to / "out" / "one").symlink_to(victim / "file")
    get(service, to, job, "out/one", status=3)
    get(service, to, job, "out/one", "--force")
    assert (victim / "file").read_text() == "precious"
    assert (to / "out" / "one").read_text() == "one\n"


def test_jobs_without_any_say_so(service: LiveService) -> None:
    plain = service.submit("--repo", "app", "--", "true")
    service.end_of(plain)
    assert service.show(plain)["artifacts"] is None
    done = service.cli("artifact", "list", plain, status=2)
    assert "was submitted without --artifact" in done.err
    for pattern in ("/etc/*", "../x", "a/../../b", "", "~/x"):
        words = ("--artifact", pattern, "--", "true")
        done = service.cli("submit", "--repo", "app", *words, status=2)
        assert "artifacts" in done.err


def test_a_batch_and_a_job_file_can_ask_for_them(
    service: LiveService, tmp_path: Path
) -> None:
    [job] = service.batch(
        [{"repo": "app", "argv": ["sh", "-c", "echo b > b"], "artifacts": ["b"]}]
    )
    service.end_of(job)
    assert [f["path"] for f in service.show(job)["artifacts"]["files"]] == ["b"]


def test_each_attempt_has_its_own(service: LiveService) -> None:
    script = "echo $FORGE_ATTEMPT > attempt; exit $((2 - $FORGE_ATTEMPT))"
    words = ("--repo", "app", "--replay", "always", "--max-attempts", "2")
    job = service.submit(*words, "--artifact", "attempt", "--", "sh", "-c", script)
    assert service.end_of(job)["attempt"] == 2
    for number in ("1", "2"):
        words = ("artifact", "get", job, "attempt", "--to", "-", "--attempt", number)
        assert service.cli(*words, status=0).out == f"{number}\n"
    done = service.cli("artifact", "list", job, "--attempt", "3", status=2)
    assert "3 is not among the 2 there were" in done.err


def test_while_it_runs_there_is_nothing_yet(service: LiveService) -> None:
    gate, bell = service.gate(), service.bell()
    script = f"{bell.ring}; {gate.wait}; echo x > x"
    job = service.bash("app", script, "--artifact=x")
    bell.wait()
    assert service.show(job)["artifacts"] is None
    assert service.json("artifact", "list", job)["state"] == "pending"
    gate.open()
    service.end_of(job)
    assert service.show(job)["artifacts"]["state"] == "complete"


def damage(service: LiveService, job: str, name: str, data: bytes) -> Path:
    """Exchange a kept file for another of the same size."""
    folder = service.home / "artifacts" / job / "1"
    manifest = json.loads((folder / "manifest.json").read_text())
    [file] = [each for each in manifest["files"] if each["path"] == name]
    (folder / file["name"]).write_bytes(data)
    return folder


def test_what_is_not_what_was_collected_is_not_fetched(
    service: LiveService, tmp_path: Path
) -> None:
    job = service.bash("app", "echo one > one; echo two > two", "--artifact=*")
    service.end_of(job)
    folder = damage(service, job, "one", b"ONE\n")
    assert "its hash differs" in get(service, tmp_path / "to", job, "one", status=None)
    assert list((tmp_path / "to").iterdir()) == []
    damage(service, job, "two", b"longer")
    refused = get(service, tmp_path / "to", job, "two", status=None)
    assert "two is not what was collected" in refused
    manifest: Any = json.loads((folder / "manifest.json").read_text())
    manifest["files"][0]["path"] = "../../evil"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    found = service.json("artifact", "list", job)
    assert (found["state"], found["files"]) == ("incomplete", [])
    (folder / "manifest.json").unlink()
    assert service.json("artifact", "list", job)["state"] == "removed"
    shutil.rmtree(folder.parent)
    assert service.show(job)["artifacts"]["state"] == "removed"


async def test_without_a_service_they_are_there_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.acceptance.service import call

    home, app = tmp_path / "home", tmp_path / "app"
    subprocess.run(["git", "init", "-q", str(app)], check=True)  # noqa: ASYNC221
    async with open_runtime(home) as runtime:
        await runtime.add_repository(app)
        script = "mkdir d; echo x > d/x; seq 100000 > big"
        job = await runtime.submit(app, ["sh", "-c", script], artifacts=["d", "big"])
        await job.wait()
        served = (await runtime.control.job(job.id)).artifacts
    monkeypatch.chdir(tmp_path)
    words = ("--home", home, "artifact")
    shown = json.loads(call("--home", home, "show", job.id, "--json", status=0).out)
    listed = json.loads(call(*words, "list", job.id, "--json", status=0).out)
    assert shown["artifacts"] == listed
    assert served is not None
    assert [f["path"] for f in listed["files"]] == [f.path for f in served.files]
    done = call(*words, "get", job.id, "d/x", "--to", "-", status=0)
    assert done.raw == b"x\n"
    call(*words, "get", job.id, "--to", "all", status=0)
    assert (tmp_path / "all" / "d" / "x").read_text() == "x\n"
    assert (tmp_path / "all" / "big").read_text().endswith("\n100000\n")
