"""The folders in which attempts find the files of earlier jobs."""

from __future__ import annotations

import json
import os
import stat
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.inputs import Input, InputsMissing, InputsWanted
from forge_actors.domain.launch import Collected
from forge_actors.runtime import input_folders
from forge_actors.runtime.input_folders import InputFolders, input_folder
from forge_actors.testing.inputs import FakeInputs
from forge_actors.testing.inputs_contract import CHECKS
from tests.runtime.inputs_kit import keep

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from forge_actors.testing.inputs_contract import World

JOB, OTHER = "job1", "job2"


def wanted(home: Path, *inputs: Input, **limits: Any) -> InputsWanted:
    values = {"files": 1000, "bytes": 1 << 30, "seconds": 60.0, **limits}
    return InputsWanted(input_folder(str(home), "taker", 1), inputs, **values)


class Folders:
    """The real ones, with the last attempts of some jobs."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.last: dict[str, tuple[int, Collected | None]] = {}
        self.inputs = InputFolders(home, self._last)
        self.wanted = wanted(home, Input(JOB, "build"))
        self.kept = keep(home, JOB, {"out/a": b"a"})

    def _last(self, job: str) -> tuple[int, Collected | None]:
        return self.last.get(job, (1, Collected()))

    def is_there(self) -> bool:
        return os.path.lexists(self.wanted.folder)

    def lose(self) -> None:
        (self.kept / "manifest.json").unlink()

    async def problem(self, *inputs: Input, **limits: Any) -> str:
        """Why these cannot be placed; nothing of them is left then."""
        self.wanted = wanted(self.home, *(inputs or self.wanted.inputs), **limits)
        with pytest.raises(InputsMissing) as found:
            await self.inputs.place(self.wanted)
        assert not self.is_there()
        assert found.value.code == "INPUTS_MISSING"
        return str(found.value)


class Faked:
    def __init__(self, home: Path) -> None:
        self.inputs = FakeInputs()
        self.wanted = wanted(home, Input(JOB, "build"))

    def is_there(self) -> bool:
        return self.wanted.folder in self.inputs.folders

    def lose(self) -> None:
        self.inputs.problem = "they are gone"


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("made", [Folders, Faked])
async def test_contract(
    made: Callable[[Path], World],
    check: Callable[[World], Awaitable[None]],
    tmp_path: Path,
) -> None:
    await check(made(tmp_path))


def tree(folder: str) -> dict[str, tuple[bytes, int]]:
    found = {}
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            with open(path, "rb") as file:
                mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
                found[os.path.relpath(path, folder)] = (file.read(), mode)
    return found


async def test_they_are_copies_of_what_is_meant_and_of_the_last_attempt(
    tmp_path: Path,
) -> None:
    folders = Folders(tmp_path)
    keep(tmp_path, OTHER, {"no": b"old"})
    files = {"dist/x.sh": b"x", "dist/.deep/y": b"y", "z": b"z"}
    kept = keep(tmp_path, OTHER, files, attempt=2)
    folders.last[OTHER] = (2, None)
    inputs = [
        Input(JOB, "build"),
        Input(OTHER, OTHER, "dist"),
        Input(OTHER, OTHER, "*"),
    ]
    order = wanted(tmp_path, *inputs, files=4, bytes=4)
    await folders.inputs.place(order)
    assert tree(order.folder) == {
        "build/out/a": (b"a", 0o400),
        f"{OTHER}/dist/x.sh": (b"x", 0o500),
        f"{OTHER}/dist/.deep/y": (b"y", 0o400),
        f"{OTHER}/z": (b"z", 0o400),
    }
    for folder in (tmp_path / "inputs", order.folder):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    # Whatever a job does to its copy, what is kept stays what it was.
    copy = Path(order.folder, OTHER, "z")
    copy.chmod(0o600)
    copy.write_bytes(b"other")
    assert (kept / "3").read_bytes() == b"z"


async def test_what_is_not_there_or_too_much_is_said(tmp_path: Path) -> None:
    folders = Folders(tmp_path)
    pattern = Input(JOB, "build", "dist")
    said = await folders.problem(Input(JOB, "build"), pattern)
    assert said == "job job1 kept no artifact that dist means"
    folders.last[OTHER] = (1, Collected(error="it took too long"))
    said = await folders.problem(Input(OTHER, OTHER))
    assert said == "job job2 kept no artifacts: it took too long"
    folders.last[OTHER] = (1, Collected())
    said = await folders.problem(Input(OTHER, OTHER))
    assert said == "the artifacts of job job2 were removed by the clean-up"
    keep(tmp_path, OTHER, {"a": b"aa", "b": b"b"})
    both = Input(JOB, "build"), Input(OTHER, OTHER)
    for limits in ({"files": 2}, {"bytes": 3}):
        said = await folders.problem(*both, **limits)
        assert said.startswith("its inputs are 3 files of 4 bytes, more than the ")


async def test_what_was_left_out_is_missing_only_if_it_is_meant(
    tmp_path: Path,
) -> None:
    folders = Folders(tmp_path)
    path = folders.kept / "manifest.json"
    manifest = json.loads(path.read_text())
    left_out = [
        {"path": "report.xml", "reason": "nothing matches it"},
        {"path": "out/big", "reason": "over the limit of 1 bytes in all"},
    ]
    path.write_text(json.dumps({**manifest, "left_out": left_out}))
    said = await folders.problem(Input(JOB, "build", "out"))
    assert said == "job job1 did not keep 'out/big': over the limit of 1 bytes in all"
    await folders.inputs.place(wanted(tmp_path, Input(JOB, "build", "out/a")))
    left_out[1] = {"path": "", "reason": "it took longer than 1 s"}
    path.write_text(json.dumps({**manifest, "left_out": left_out}))
    said = await folders.problem(Input(JOB, "build", "out/a"))
    assert said == "job job1 did not keep 'something': it took longer than 1 s"


async def test_what_is_not_what_was_collected_is_placed_nowhere(
    tmp_path: Path,
) -> None:
    folders = Folders(tmp_path)
    (folders.kept / "1").write_bytes(b"b")
    said = await folders.problem()
    assert said.endswith("out/a of job job1 is not what was collected")
    (folders.kept / "1").write_bytes(b"longer")
    assert (await folders.problem()).endswith("out/a is not what was collected")
    (folders.kept / "1").unlink()
    (folders.kept / "1").symlink_to("/etc/passwd")
    assert "out/a cannot be read" in await folders.problem()
    path = folders.kept / "manifest.json"
    path.write_text(path.read_text().replace("out/a", "../../a"))
    assert "a collected file has the path '../../a'" in await folders.problem()


async def test_one_that_is_given_up_is_not_gone_on_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folders = Folders(tmp_path)
    scope = trio.CancelScope()

    @contextmanager
    def endless(*_: object) -> Iterator[Callable[[int], bytes]]:
        left = iter(range(1000))

        def read(_: int) -> bytes:
            trio.from_thread.run_sync(scope.cancel)
            return b"a" if next(left, None) is not None else b""

        yield read

    monkeypatch.setattr(input_folders, "opened", endless)
    with scope:
        await folders.inputs.place(folders.wanted)
    assert scope.cancelled_caught
    assert not folders.is_there()
    said = await folders.problem(seconds=0.0)
    assert said == "its inputs took longer than 0 s to be placed"
