"""Selecting jobs on the command line: ids, options, both, neither."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.selection import MAX_SELECTED
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


@pytest.mark.parametrize("verb", ["wait", "cancel", "show", "why"])
def test_a_verb_without_a_job_says_how_to_select_one(shell: Shell, verb: str) -> None:
    status, out, err = shell.now(verb)
    assert (status, out) == (2, "")
    assert err == (
        "forge-actors: no job is selected: give ids, or --repo, --state, --kind,"
        " --label, --work, --failed or --mine\n"
    )


async def test_each_selector_selects(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        first = await shell.submit("--repo", "app", "--label", "a")
        second = await shell.submit("--repo", "lib", "--label", "a", "--label", "b")
        third = await shell.submit("--repo", "app", "--kind", "check")
        control.end(third, "timed_out", exit_code=None)
        control.views[second].work = "w"
        for words, wanted in (
            ("--repo app", [third, first]),
            ("--repo app --repo lib", [third, second, first]),
            ("--repo app --label a", [first]),
            ("--label a --label b", [second]),
            ("--kind check", [third]),
            ("--state queued --state running", [second, first]),
            ("--failed", [third]),
            ("--mine", [third, second, first]),
            ("--work w", [second]),
            (f"{first} {third[-4:]} --repo app --state queued", [first]),
        ):
            status, out, err = await shell("why", "--json", *words.split())
            assert (status, err) == (0, ""), words
            assert [answer["job"] for answer in json.loads(out)] == wanted, words


async def test_mine_in_a_job_are_the_jobs_it_submitted(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path):
        parent = await shell.submit()
        monkeypatch.setenv("FORGE_JOB_ID", parent)
        assert (await shell("cancel", "--mine"))[0] == 3
        child = await shell.submit()
        assert (await shell("cancel", "--mine"))[1] == f"{child} cancelled\n"
        monkeypatch.delenv("FORGE_JOB_ID")
        assert (await shell("cancel", "--mine"))[1] == f"{parent} cancelled\n"


async def test_a_selection_of_nothing_is_refused_in_a_sentence(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit("--label", "a")
        assert await shell("why", "--kind", "check", "--failed") == (
            3,
            "",
            "forge-actors: no job matches --kind check --failed\n",
        )
        control.end(job)
        for verb in ("wait", "cancel"):
            assert await shell(verb, "--label", "a") == (
                3,
                "",
                "forge-actors: no job that has not ended matches --label a\n",
            )
        status, _, err = await shell("show", job, "--repo", "other")
        assert (status, "none of the named jobs matches" in err) == (3, True)


async def test_a_selector_that_cannot_be_is_a_usage_error(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        for words, message in (
            ("--state quued", "state[0]: 'quued' is unknown; did you mean 'queued'?"),
            ("--kind chekc", "kind[0]: 'chekc' is unknown; did you mean 'check'?"),
            ("--stat queued", "there is no option --stat; did you mean --state?"),
            ("--failed nowhere", "there is no job 'nowhere'"),
        ):
            status, out, err = await shell("cancel", *words.split())
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert message in err


async def test_cancel_ends_what_was_selected_and_nothing_else(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        jobs = [await shell.submit("--repo", repo) for repo in ("app", "lib", "app")]
        control.end(jobs[0])
        status, out, _ = await shell("cancel", "--repo", "app")
        assert (status, out) == (0, f"{jobs[2]} cancelled\n")
        assert control.views[jobs[1]].state == "queued"


async def test_wait_waits_for_what_has_not_ended(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        old, new = await shell.submit(), await shell.submit("--label", "x")
        control.end(old, "failed", exit_code=1)
        status, out, _ = await shell("wait", "--mine", "--timeout", "0", "--json")
        assert status == 5
        assert [job["id"] for job in json.loads(out)["jobs"]] == [new]
        third = await shell.submit("--label", "x")
        status, _, err = await shell("wait", "--pass-code", "--label", "x")
        assert (status, "belongs to one job, not to 2" in err) == (2, True)
        control.end(new, "failed", exit_code=9)
        control.end(third, "failed", exit_code=8)


async def test_one_named_job_is_shown_as_one_and_several_as_a_list(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        job = await shell.submit("--label", "x")
        for verb in ("show", "why"):
            assert isinstance(json.loads((await shell(verb, job, "--json"))[1]), dict)
            for words in ((job, job), ("--label", "x"), (job, "--label", "x")):
                answer = json.loads((await shell(verb, "--json", *words))[1])
                assert isinstance(answer, list), (verb, words)


async def test_more_than_the_limit_is_refused(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path):
        path = tmp_path / "batch"
        path.write_text('{"repo":"app","argv":["x"]}\n' * (MAX_SELECTED + 1))
        await shell("submit", "--batch", str(path))
        status, out, err = await shell("cancel", "--repo", "app")
        assert (status, out) == (3, "")
        assert "more than 10000 jobs are selected" in err
