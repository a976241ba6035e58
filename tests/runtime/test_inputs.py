"""Inputs of jobs: what a request may name, and what becomes of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.inputs import Input
from forge_actors.domain.requests import JobRequest
from tests.runtime.admission_kit import Case as Admitted
from tests.runtime.admission_kit import admission
from tests.runtime.control_kit import controlled

if TYPE_CHECKING:
    from pathlib import Path

TAKE = 'cat "$FORGE_INPUTS/build/out" && chmod +w "$FORGE_INPUTS"/build/out'
TAKE += ' && echo other > "$FORGE_INPUTS/build/out"'


def shell(script: str, **options: Any) -> JobRequest:
    return JobRequest("app", ["sh", "-c", script], **options)


async def accepted(case: Admitted, *requests: JobRequest) -> list[str]:
    return [entry.id for entry in await case.admission.submit(requests)]


async def test_a_job_runs_after_those_whose_files_it_takes(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        [old] = await accepted(case, shell("", artifacts=["*"], name="old"))
        takes = shell("", name="takes", inputs=[f"{old}:a", "new", "new:x"])
        made = shell("", artifacts=["*"], name="new")
        # In a batch those it takes from may come behind it.
        taking, new = await accepted(case, takes, made)
        assert set(case.jobs()[taking].after) == {old, new}
        assert case.store.spec(taking).inputs == (
            Input(old, "old", "a"),
            Input(new, "new"),
            Input(new, "new", "x"),
        )


async def test_one_that_is_asked_for_again_is_the_same(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        [old] = await accepted(case, shell("", artifacts=["*"]))
        first = await accepted(case, shell("", inputs=[old], request_id="r"))
        assert await accepted(case, shell("", inputs=[old], request_id="r")) == first


async def test_what_can_be_taken_from_nobody_is_refused(tmp_path: Path) -> None:
    async with admission(tmp_path) as case:
        [none] = await accepted(case, shell("", name="none"))
        wrong = {
            none: f"inputs: job {none} keeps no files: submit it with --artifact GLOB",
            "nowhere": "after: ",
            f"{none}:../x": "inputs: '../x' leads out of the job's folder",
            ":x": "inputs: ':x' is neither JOB nor JOB:GLOB",
        }
        for text, said in wrong.items():
            with pytest.raises(InvalidInput) as found:
                await accepted(case, shell("", inputs=[text]))
            assert str(found.value).startswith(said)
        batch = [shell("", name="none"), shell("", inputs=["none"])]
        with pytest.raises(InvalidInput, match=r"jobs\[1\].inputs: job none keeps no"):
            await accepted(case, *batch)
        with pytest.raises(InvalidInput, match="inputs: are more than 32"):
            await accepted(case, shell("", inputs=["x"] * 33))
        with pytest.raises(InvalidInput, match="outputs: '9' cannot name an output"):
            await accepted(case, shell("", outputs=["9"]))
        assert list(case.jobs()) == [none]


async def test_files_and_values_come_from_one_job_to_the_next(tmp_path: Path) -> None:
    async with controlled(tmp_path) as case:
        script = 'echo made > out; echo "A=1\nB=2" > "$FORGE_OUTPUT"'
        # That one pattern means nothing takes nothing from whoever asks for all.
        patterns = ["out", "no"]
        make = shell(script, name="build", artifacts=patterns, outputs=["A", "C"])
        take = shell(TAKE, inputs=["build"])
        build, taking = (e.id for e in await case.control.submit([make, take]))
        view = await case.control.job(taking)
        assert view.inputs == [build]
        await case.control.wait([taking])
        view = await case.control.job(build)
        assert view.outputs == {"A": "1"}
        assert view.outputs_problem == "B was not declared; C is missing"
        view = await case.control.job(taking)
        assert (view.state, view.outputs) == ("succeeded", None)
        log = await case.control.read_log(taking, "stdout", 0, limit=100)
        assert log.data == b"made\n"
        home = tmp_path / "home"
        assert list((home / "inputs").iterdir()) == [], "they go with the attempt"
        assert (home / "artifacts" / build / "1" / "1").read_text() == "made\n"
        # What is not there any more is said, and nothing is started.
        shutil.rmtree(home / "artifacts" / build)
        [again] = await case.control.retry([taking])
        [view] = await case.control.wait([again.id])
        assert (view.state, view.pid) == ("failed", None)
        assert view.error is not None
        assert view.error.code == "INPUTS_MISSING"
        why = f"the artifacts of job {build} were removed by the clean-up"
        assert view.error.message.startswith(why)


async def test_a_chain_that_is_retried_takes_from_what_was_made_anew(
    tmp_path: Path,
) -> None:
    async with controlled(tmp_path) as case:
        once = "test -e ran && echo made > out || { touch ran; exit 1; }"
        make = shell(once, name="build", artifacts=["out"])
        take = shell(TAKE, inputs=["build"])
        old = [entry.id for entry in await case.control.submit([make, take])]
        first = await case.control.wait(old)
        assert [view.attempt for view in first] == [1, 0]
        made = [entry.id for entry in await case.control.retry(old)]
        views = await case.control.wait(made)
        assert [view.state for view in views] == ["succeeded", "succeeded"]
        assert views[1].inputs == [made[0]]
