"""What a failed job printed as errors is told, without secrets and private paths."""

from __future__ import annotations

from pathlib import Path

from forge_actors.client import offline
from forge_actors.domain.events import EventQuery
from tests.runtime.kit import make_repository, running

SECRET = "sk-" + "a1" * 20
SCRIPT = f"""
echo first >&2
echo "cannot read $HOME/.config with {SECRET}" >&2
exit 7
"""
MESSAGE = "exit status 7: first\ncannot read <home>/.config with [redacted]"


async def test_a_failed_job_shows_its_last_words_scrubbed(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "app")
    home = tmp_path / "home"
    async with running(home) as runtime:
        job = await runtime.submit(repo, ["sh", "-c", SCRIPT])
        for view in (await job.wait(), await job.show()):
            assert view.error is not None
            assert view.error.message == MESSAGE
            # The command is the user's own.
            assert SECRET in str(view.argv)
        assert MESSAGE in await job.why()
        page = await runtime.control.events(EventQuery(limit=1000), wait=False)
        [failed] = [event for event in page.events if event.kind == "job_failed"]
        assert failed.data["error"] == {"code": "EXIT_NONZERO", "message": MESSAGE}
        log = await runtime.control.read_log(job.id, "stderr", 0, limit=1000)
        assert SECRET.encode() in log.data
    assert offline.job(str(home), job.id)["error"]["message"] == MESSAGE


async def test_paths_in_the_home_of_the_service_are_not_shown(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "app")
    home = tmp_path / "home"
    async with running(home) as runtime:
        job = await runtime.submit(repo, ["sh", "-c", f"echo {home}/x >&2; exit 1"])
        view = await job.wait()
        assert view.error is not None
        assert view.error.message == "exit status 1: <forge-home>/x"
