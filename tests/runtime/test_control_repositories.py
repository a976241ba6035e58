"""Control: repositories, and output that is waited for."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
import trio

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.requests import JobRequest
from tests.runtime.control_kit import controlled
from tests.runtime.kit import make_repository, running

#: Looked at in no moment, so that nothing of them changes by itself.
UNSEEN = {"enabled": False}

# Repositories


async def test_another_spelling_gives_the_known_repository_and_says_so(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path, status=UNSEEN) as case:
        [known] = await case.control.repositories()
        (tmp_path / "link").symlink_to(tmp_path / "app")
        (tmp_path / "app" / "sub").mkdir()
        tree = tmp_path / "tree"
        subprocess.run(  # noqa: ASYNC221
            ["git", "-C", str(tmp_path / "app"), "worktree", "add", "-q", str(tree)],
            check=True,
            capture_output=True,
        )
        for path in (tmp_path / "link", tmp_path / "app" / "sub", tree):
            again = await case.control.add_repository(str(path))
            assert (again.id, again.name) == (known.id, "app")
            assert again.note == "already registered as 'app'"
        same = await case.control.add_repository(str(tree), "app")
        assert same.id == known.id
        with pytest.raises(Refused, match="already registered as 'app'"):
            await case.control.add_repository(str(tree), "another")
        assert await case.control.repositories() == [known]
        # A job of the linked work tree runs there, as the same repository.
        job = await case.submit(str(tree), "true")
        view = await case.control.job(job)
        assert (view.repo, view.cwd) == ("app", str(tree))


async def test_names_are_unique_and_fit(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        other = make_repository(tmp_path / "deeper" / "app")
        with pytest.raises(Refused, match=f"'app' is the name of {tmp_path}/app"):
            await case.control.add_repository(str(other))
        added = await case.control.add_repository(str(other), "app-2")
        assert added.note is None
        assert (await case.control.repository("app-2")).path == str(other)
        assert (await case.control.repository(added.id)).name == "app-2"
        assert (await case.control.repository(str(other))).name == "app-2"
        for name in ("", "UPPER", "a/b", "x" * 65, "sp ace"):
            with pytest.raises(InvalidInput, match="name"):
                await case.control.add_repository(str(other), name)
        strange = make_repository(tmp_path / "My Project (1)")
        assert (await case.control.add_repository(str(strange))).name == "my-project-1"
        with pytest.raises(NotFound, match="did you mean 'app-2'"):
            await case.control.repository("app-3")


async def test_two_callers_that_add_one_repository_add_it_once(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        folder = make_repository(tmp_path / "new")
        views = []

        async def add() -> None:
            views.append(await case.control.add_repository(str(folder)))

        async with trio.open_nursery() as nursery:
            for _ in range(4):
                nursery.start_soon(add)
        assert len({view.id for view in views}) == 1
        assert len(await case.control.repositories()) == 2


async def test_a_repository_with_jobs_is_not_removed(tmp_path: Path) -> None:
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        held = await case.hold()
        waits = await case.submit()
        with pytest.raises(Refused, match="app has 2 jobs that wait or run"):
            await case.control.remove_repository("app")
        view = (await case.control.repositories())[0]
        assert (view.waiting, view.running) == (1, 1)
        removed = await case.control.remove_repository("app", cancel=True)
        assert not removed.enabled
        states = {v.id: v.state for v in await case.control.wait([held, waits])}
        assert states == {held: "cancelled", waits: "cancelled"}
        assert await case.control.repositories() == []
        with pytest.raises(NotFound):
            await case.submit()
        # The folder may come back; it is another repository then, and its old jobs
        # can still be read.
        again = await case.control.add_repository(str(tmp_path / "app"))
        assert again.id != removed.id
        assert (await case.control.job(held)).state == "cancelled"


async def test_what_is_registered_outlives_the_runtime(tmp_path: Path) -> None:
    async with controlled(tmp_path, status=UNSEEN) as case:
        await case.add("gone")
        await case.control.remove_repository("gone")
        job = await case.submit()
        await case.control.wait([job])
        before = await case.control.repositories()
    async with running(tmp_path / "home", status=UNSEEN) as runtime:
        assert await runtime.control.repositories() == before
        again = await runtime.control.submit([JobRequest("app", ["true"])])
        [view] = await runtime.control.wait([again[0].id])
        assert view.fence == 2


async def test_streams_have_names(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        job = await case.submit("app", "sh", "-c", "echo out; echo err >&2")
        await case.control.wait([job])
        chunk = await case.control.read_log(job, "stderr", 0, limit=100)
        assert chunk.data == b"err\n"
        chunk = await case.control.read_log(job, "stdout", -2, limit=100)
        assert chunk.data == b"t\n"
        with pytest.raises(InvalidInput, match="allowed: stdout, stderr"):
            await case.control.read_log(job, "stdin", 0, limit=100)


async def test_output_is_waited_for_until_it_comes(tmp_path: Path) -> None:
    """Also of a job that has not begun: what others save in the meantime is no news."""
    async with controlled(tmp_path, limits={"workers": 1}) as case:
        held = await case.hold()
        job = await case.submit("app", "sh", "-c", "echo ready; sleep 600")
        returned = trio.Event()

        async def wait() -> None:
            await case.control.wait_output(job, 0)
            returned.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait)
            await case.control.cancel(await case.submit())
            assert not returned.is_set()
            await case.control.cancel(held)
            await returned.wait()
            chunk = await case.control.read_log(job, "stdout", 0, limit=100, wait=True)
            assert chunk.data == b"ready\n"


async def test_everything_about_one_repository(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        before = await case.control.repository("app")
        assert (before.fence, before.last_dispatch, before.counts) == (0, None, {})
        done = await case.submit("app", "false")
        await case.control.wait([done])
        held = await case.hold()
        waits = await case.submit(after=[held])
        view = await case.control.repository(str(tmp_path / "app"))
        assert view.path == str(tmp_path / "app")
        assert view.common_dir == str(tmp_path / "app" / ".git")
        assert view.enabled
        assert view.counts == {"waiting_for_dependency": 1, "running": 1, "failed": 1}
        assert (view.waiting, view.running) == (1, 1)
        assert view.running_jobs == [held]
        running = await case.control.job(held)
        assert view.fence == running.fence == 2
        assert view.last_dispatch is not None
        assert view.last_dispatch <= str(running.started_at)
        await case.end(held, waits)


async def test_a_retry_follows_a_repository_that_moved_since(tmp_path: Path) -> None:
    """Through every move that came after its end."""
    async with controlled(tmp_path) as case:
        (tmp_path / "app" / "sub").mkdir()
        options: dict[str, Any] = {"cwd": "sub", "claims": ["write:workspace"]}
        old = await case.submit("app", "pwd", **options)
        await case.control.wait([old])
        for name in ("second", "third"):
            [known] = await case.control.repositories()
            Path(known.path).rename(tmp_path / name)
            found = await case.control.relocate_repository("app", str(tmp_path / name))
            assert found.path == str(tmp_path / name)
        later = await case.submit("app", "false", **options)
        await case.control.wait([later])
        retried = await case.control.retry([old, later])
        views = await case.control.wait([each.id for each in retried])
        assert [view.state for view in views] == ["succeeded", "failed"]
        assert {view.cwd for view in views} == {str(tmp_path / "third" / "sub")}
        chunk = await case.control.read_log(views[0].id, "stdout", 0, limit=1000)
        assert chunk.data.decode() == f"{tmp_path}/third/sub\n"
        # What the old one was stays what it was.
        assert (await case.control.job(old)).cwd == str(tmp_path / "app" / "sub")


async def test_a_request_is_the_same_where_its_repository_was_moved_to(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        (tmp_path / "app" / "sub").mkdir()
        options: dict[str, Any] = {
            "cwd": "sub",
            "claims": ["write:workspace", "read:path:sub"],
            "request_id": "once",
        }
        [first] = await case.control.submit([JobRequest("app", ["true"], **options)])
        await case.control.wait([first.id])
        (tmp_path / "app").rename(tmp_path / "moved")
        place = str(tmp_path / "moved")
        for repo in (place, "app"):
            [again] = await case.control.submit([JobRequest(repo, ["true"], **options)])
            assert (again.id, again.existing) == (first.id, True)
        with pytest.raises(Refused, match="which is not the same as this one"):
            await case.submit("app", "false", **options)
