"""`logs` in front of a service: exact, clean, a part, or several with a prefix."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
import trio
import trio.testing

from forge_actors.testing.service import fake_service
from tests.cli.shell import finish

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell


def in_a_pipe(home: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "forge_actors", *words, "--home", str(home)]
    return subprocess.run(command, capture_output=True, check=False)


async def test_a_pipe_gets_the_exact_bytes(tmp_path: Path, shell: Shell) -> None:
    data = bytes(range(256)) * 20
    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        finish(control, job, data)
        for words in (("logs", job), ("logs", "-f", "--stream", "stdout", job)):
            done = await trio.to_thread.run_sync(in_a_pipe, tmp_path, *words)
            assert (done.returncode, done.stdout) == (0, data)


async def test_a_terminal_gets_no_control_characters(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        finish(control, job, b"one\r\n\x1b[2J\x1b]0;x\x07two\xff\n")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert (await shell("logs", job))[1] == "one\ntwo\ufffd\n"
        monkeypatch.undo()
        assert (await shell("logs", "--tail", "1", job, "--json"))[1] == (
            '{"text": "\\u001b[2J\\u001b]0;x\\u0007two\\ufffd\\n"}\n'
        )


async def test_a_reader_that_leaves_is_no_error(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        job = (await shell("submit", "--", "x"))[1].strip()
        finish(control, job, b"line\n" * 500_000)
        command = f"{sys.executable} -m forge_actors logs {job} --home {tmp_path}"
        pipe = f"set -o pipefail; {command} | head -n 1"
        done = await trio.run_process(
            ["bash", "-c", pipe], capture_stdout=True, capture_stderr=True
        )
        assert (done.stdout, done.stderr) == (b"line\n", b"")


# Parts


async def test_a_part_of_the_output(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        job = await shell.submit()
        control.write(job, b"1\n2\n3\n4\n")
        control.write(job, b"e\n", stream="stderr")
        control.starts[job, "stdout", "10m"] = 4
        control.end(job)
        for words, wanted in (
            ("--stdout", b"1\n2\n3\n4\n"),
            ("--stderr", b"e\n"),
            ("--tail 1", b"4\ne\n"),
            ("--stdout --tail 2", b"3\n4\n"),
            ("--stdout --since 10m", b"3\n4\n"),
            ("--stdout --bytes 2-3", b"2\n"),
            ("--stdout --bytes 4-", b"3\n4\n"),
            ("--stdout --bytes -2", b"4\n"),
            ("--stdout --range 0-0", b"1"),
            ("--stdout --bytes 100-", b""),
            ("--attempt 1 --stderr", b"e\n"),
        ):
            done = await trio.to_thread.run_sync(
                in_a_pipe, tmp_path, "logs", job, *words.split()
            )
            assert (done.returncode, done.stdout, done.stderr) == (0, wanted, b"")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "no job is selected: give ids"),
        ("-f", "no job is selected: give ids"),
        ("--tail -1 abcd", "--tail: must not be negative"),
        ("--tail x abcd", "'x' is no whole number"),
        ("--bytes 5 --stdout abcd", "--bytes: '5' is not FROM-TO, FROM- or -N"),
        ("--bytes=- --stdout abcd", "--bytes: '-' is not FROM-TO"),
        ("--bytes 5-4 --stdout abcd", "--bytes: '5-4' ends before it begins"),
        ("--bytes -0 --stdout abcd", "--bytes: -0 is no byte at all"),
        ("--bytes 1-2 abcd", "--bytes: belongs to one stream; add --stdout"),
        ("--bytes 1-2 --stdout --tail 1 abcd", "cannot be combined with --tail"),
        ("--bytes 1-2 --stdout abcd efgh", "--bytes: belongs to one job"),
        ("--attempt 1 abcd efgh", "--attempt: belongs to one job"),
        ("--stdout --stderr abcd", "not allowed with argument --stdout"),
        ("--stream up abcd", "--stream: 'up' is unknown"),
    ],
)
def test_a_part_that_cannot_be_is_a_usage_error(
    shell: Shell, words: str, message: str
) -> None:
    status, out, err = shell.now("logs", *words.split())
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert message in err


async def test_the_service_tells_of_a_wrong_time_and_attempt(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path):
        job = await shell.submit()
        for words, message in (
            (("--since", "yesterday", job), "since: 'yesterday' is neither a time"),
            (("--since", "yesterday", job, job), "since: 'yesterday' is neither"),
            (("--attempt", "2", job), "attempt: 2 is not among the 0 there were"),
            (("nowhere",), "there is no job 'nowhere'"),
        ):
            status, out, err = await shell("logs", *words)
            assert (status, out, err.count("\n")) == (2, "", 1)
            assert message in err


# Several jobs


async def test_several_jobs_have_a_prefix_each(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        named = await shell.submit("--name", "build")
        odd = await shell.submit("--name", "a\x1b[31mb")
        bare = await shell.submit()
        control.write(named, b"one\ntwo")
        control.write(odd, b"\xff\n")
        control.write(bare, b"x\n", stream="stderr")
        jobs = (named, odd, bare)
        for job in jobs:
            control.end(job)
        done = await trio.to_thread.run_sync(in_a_pipe, tmp_path, "logs", *jobs)
        assert done.stderr == b""
        assert done.stdout.splitlines() == [
            b"build  | one",
            b"build  | two",
            b"ab     | \xff",
            bare[-6:].encode() + b" | x",
        ]
        done = await trio.to_thread.run_sync(
            in_a_pipe, tmp_path, "logs", "--mine", "--tail", "1", "--stdout", "--json"
        )
        pieces = [json.loads(line) for line in done.stdout.splitlines()]
        assert pieces == [
            {"job": job, "name": name, "stream": "stdout", "attempt": 1, **text}
            for job, name, text in (
                (odd, "a\x1b[31mb", {"text": "\ufffd\n"}),
                (named, "build", {"text": "two"}),
            )
        ]


async def test_jobs_of_one_name_are_told_apart(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        jobs = [await shell.submit("--name", "same") for _ in range(2)]
        for job in jobs:
            finish(control, job, b"x\n")
        done = await trio.to_thread.run_sync(in_a_pipe, tmp_path, "logs", *jobs)
        wanted = [job[-6:].encode() + b" | x" for job in jobs]
        assert done.stdout.splitlines() == wanted


async def test_a_terminal_gets_clean_lines_of_several(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with fake_service(tmp_path) as control:
        jobs = [await shell.submit("--name", name) for name in "ab"]
        finish(control, jobs[0], b"\x1b[2Jred\x1b[")
        finish(control, jobs[1], b"token=abcdefgh1\n" + b"x" * 100_000 + b"\n")
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        _, out, _ = await shell("logs", *jobs)
        lines = out.splitlines()
        assert lines[:2] == ["a | red", "b | token=[redacted]"]
        assert [len(line) for line in lines[2:]] == [65_540, 34_468]


async def test_lines_of_jobs_that_are_followed_never_mix(
    tmp_path: Path, shell: Shell
) -> None:
    found: list[bytes] = []
    async with fake_service(tmp_path) as control:
        jobs = [await shell.submit("--name", name) for name in "ab"]

        async def follow() -> None:
            words = ("logs", "-f", "--mine", "--home", str(tmp_path))
            command = [sys.executable, "-m", "forge_actors", *words]
            process = await trio.run_process(command, capture_stdout=True)
            found.append(process.stdout)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await control.until_held(2)
            for text in (b"on", b"e\ntw", b"o\n"):
                for job in jobs:
                    control.write(job, text)
                    await trio.testing.wait_all_tasks_blocked()
            for job in jobs:
                control.end(job)
    assert sorted(found[0].splitlines()) == [
        b"a | one",
        b"a | two",
        b"b | one",
        b"b | two",
    ]
