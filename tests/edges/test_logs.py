"""Output from the pipe to the log and back: whole, bounded, and never wrong bytes."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from forge_actors.domain.requests import LogChunk
from forge_actors.edges.node import logs
from forge_actors.edges.node.agent import output
from forge_actors.edges.node.agent.output import HEADER, TAIL_SIZE, Stream
from tests.edges.node_jobs import opened, order, run, shell

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextlib.contextmanager
def stream(folder: Path, limit: int) -> Iterator[Stream]:
    """The stdout of a job that writes what the test passes to `take`."""
    opened = Stream(-1, os.fsencode(folder / "log.stdout"), limit, keep_tail=True)
    try:
        yield opened
    finally:
        opened.close()


def read(folder: Path, offset: int, limit: int, *, ended: bool = False) -> LogChunk:
    return logs.read(str(folder / "log"), "stdout", offset, limit, ended=ended)


def follow(folder: Path, limit: int) -> tuple[bytes, int]:
    """Everything from the start, and how many bytes were missing."""
    data, missing, offset = b"", 0, 0
    while True:
        chunk = read(folder, offset, limit, ended=True)
        assert chunk.offset == offset + chunk.missing
        data += chunk.data
        missing += chunk.missing
        offset = chunk.next_offset
        if chunk.ended:
            return data, missing


@given(
    chunks=st.lists(st.binary(min_size=1, max_size=40), max_size=12),
    output_limit=st.integers(0, 60),
    limit=st.integers(1, 50),
)
def test_what_is_kept_reads_back_as_it_was_written(
    chunks: list[bytes], output_limit: int, limit: int
) -> None:
    whole = b"".join(chunks)
    with tempfile.TemporaryDirectory() as name, stream(Path(name), output_limit) as out:
        folder = Path(name)
        for chunk in chunks:
            out.take(chunk)
        assert out.total == len(whole)
        assert out.tail == whole[-TAIL_SIZE:]
        assert out.error is None
        if output_limit < 2:
            return  # nothing or one byte is kept; there may be no file to tell the size
        assert logs.size(str(folder / "log"), "stdout") == len(whole)
        data, missing = follow(folder, limit)
        if len(whole) <= output_limit:
            assert (data, missing) == (whole, 0)
        else:
            first = output_limit // 2
            last = output_limit - first
            assert data == whole[:first] + whole[len(whole) - last :]
            assert missing == len(whole) - output_limit


@given(st.integers(1, 60), st.integers(1, 200))
def test_a_negative_offset_counts_from_the_end(back: int, length: int) -> None:
    whole = bytes(range(256))[:length]
    with tempfile.TemporaryDirectory() as name, stream(Path(name), 1000) as out:
        out.take(whole)
        chunk = read(Path(name), -back, 1000)
        assert chunk.data == whole[-back:]
        assert chunk.offset == max(0, length - back)
        assert chunk.missing == 0


def test_an_offset_past_the_end_gives_an_empty_chunk_at_the_end(tmp_path: Path) -> None:
    with stream(tmp_path, 100) as out:
        out.take(b"abc")
        assert read(tmp_path, 7, 10) == LogChunk(3, b"", 0, False)
        assert read(tmp_path, 7, 10, ended=True) == LogChunk(3, b"", 0, True)


def test_a_log_that_does_not_exist_is_empty(tmp_path: Path) -> None:
    assert logs.size(str(tmp_path / "log"), "stdout") == 0
    assert read(tmp_path, 0, 10) == LogChunk(0, b"", 0, False)
    assert read(tmp_path, -5, 10, ended=True) == LogChunk(0, b"", 0, True)


def test_bytes_overwritten_while_they_are_read_count_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer laps the reader after the header was read and before the data."""
    with stream(tmp_path, 20) as out:
        out.take(b"0123456789abcdefghij")
        real = logs._read_around

        def lapped(ring: int, position: int, length: int, ring_size: int) -> bytes:
            monkeypatch.undo()
            out.take(b"KLM")
            return real(ring, position, length, ring_size)

        monkeypatch.setattr(logs, "_read_around", lapped)
        assert read(tmp_path, 10, 100) == LogChunk(13, b"defghij", 3, False)
        assert read(tmp_path, 20, 100) == LogChunk(20, b"KLM", 0, False)


def test_bytes_are_claimed_before_they_are_overwritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reader comes between the data and the header: it must not believe either."""
    with stream(tmp_path, 20) as out:
        out.take(b"0123456789abcdefghij")
        chunks = []
        real = output._pwrite_all

        def watched(fd: int, data: bytes, offset: int) -> None:
            real(fd, data, offset)
            if data:
                chunks.append(read(tmp_path, 10, 100))

        monkeypatch.setattr(output, "_pwrite_all", watched)
        out.take(b"KLM")
        assert chunks == [LogChunk(13, b"defghij", 3, False)]


def test_a_full_disk_is_told_once_and_bytes_are_still_counted(tmp_path: Path) -> None:
    with stream(tmp_path, 100) as out:
        out.take(b"first")
        os.dup2(os.open("/dev/full", os.O_WRONLY), out._file)
        out.take(b"second")
        out.take(b"third")
        assert out.total == 16
        assert out.error is not None
        assert out.error.endswith("log.stdout is incomplete: No space left on device")
        assert out.tail == b"firstsecondthird"


def test_a_link_in_the_place_of_a_log_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("keep")
    for link in (os.symlink, os.link):
        link(precious, tmp_path / "log.stdout")
        with stream(tmp_path, 100) as out:
            out.take(b"gone")
            assert out.error is not None
        assert precious.read_text() == "keep"
        (tmp_path / "log.stdout").unlink()


def test_a_log_of_the_same_attempt_is_begun_anew(tmp_path: Path) -> None:
    for _ in range(2):
        with stream(tmp_path, 10) as out:
            out.take(b"0123456789abcdef")
    with stream(tmp_path, 10) as out:
        out.take(b"new")
        assert follow(tmp_path, 100) == (b"new", 0)


# Through the agent.


async def test_a_job_past_its_limit_ends_in_its_own_time_and_way(
    tmp_path: Path,
) -> None:
    limit = 1 << 20
    script = "echo HEAD; yes | head -c 10000000; echo TAIL; exit 3"
    wanted = shell(tmp_path, script, output_limit=limit)
    (receipt,) = await run(tmp_path, wanted)
    assert receipt.exit_code == 3
    assert receipt.error is None
    assert receipt.stdout_bytes == logs.size(wanted.log, "stdout") == 10_000_010
    assert (tmp_path / "job.stdout").stat().st_size == limit // 2
    assert (tmp_path / "job.stdout.tail").stat().st_size == limit // 2 + HEADER.size
    first = logs.read(wanted.log, "stdout", 0, 7)
    assert first.data == b"HEAD\ny\n"
    last = logs.read(wanted.log, "stdout", -7, 100, ended=True)
    assert (last.data, last.ended) == (b"y\nTAIL\n", True)
    middle = logs.read(wanted.log, "stdout", 5_000_000, 10)
    assert middle.missing == 10_000_010 - limit // 2 - 5_000_000


async def test_fifty_megabytes_cost_little_and_others_are_served(
    tmp_path: Path,
) -> None:
    noisy = shell(tmp_path, "yes | head -c 50000000", job="noisy")
    async with opened(tmp_path) as launcher:
        attempt = launcher.launch(noisy)
        await launcher.wait_output("noisy", 1, 0)
        quiet = await launcher.launch(order(tmp_path, "true", job="quiet")).exited()
        assert quiet.exit_code == 0
        assert (await attempt.exited()).stdout_bytes == 50_000_000
        status = Path(f"/proc/{launcher.agent_pid}/status").read_text()
        assert int(status.split("VmHWM:")[1].split()[0]) < 24 * 1024
        # Of time of the processor, as other tests may run beside this one.
        stat = Path(f"/proc/{launcher.agent_pid}/stat").read_text()
        ticks = sum(map(int, stat.rpartition(")")[2].split()[11:13]))
        assert ticks < 4 * os.sysconf("SC_CLK_TCK")


async def test_one_very_long_line_is_kept(tmp_path: Path) -> None:
    program = "print('x' * 5_000_000)"
    wanted = order(tmp_path, sys.executable, "-c", program)
    (receipt,) = await run(tmp_path, wanted)
    assert receipt.exit_code == 0
    assert (tmp_path / "job.stdout").read_bytes() == b"x" * 5_000_000 + b"\n"


async def test_bytes_that_are_no_text_are_kept_and_shown_replaced(
    tmp_path: Path,
) -> None:
    wanted = shell(tmp_path, r"printf 'a\xff\xfe\x00b\n' | tee /dev/stderr")
    (receipt,) = await run(tmp_path, wanted)
    assert (tmp_path / "job.stdout").read_bytes() == b"a\xff\xfe\x00b\n"
    assert receipt.stderr_tail == "a\ufffd\ufffd\0b\n"


async def test_a_log_that_cannot_be_written_does_not_hold_up_the_job(
    tmp_path: Path,
) -> None:
    log = str(tmp_path / "no-folder" / "job")
    wanted = shell(tmp_path, "yes | head -c 1000000; exit 3", log=log)
    (receipt,) = await run(tmp_path, wanted)
    assert (receipt.exit_code, receipt.stdout_bytes) == (3, 1_000_000)
    assert receipt.error is not None
    assert "is incomplete: No such file or directory" in receipt.error


async def test_the_receipt_repeats_the_last_of_stderr(tmp_path: Path) -> None:
    script = "for i in $(seq 10000); do echo line $i; done >&2"
    (receipt,) = await run(tmp_path, shell(tmp_path, script))
    assert len(receipt.stderr_tail) == TAIL_SIZE
    assert receipt.stderr_tail.endswith("line 9999\nline 10000\n")
