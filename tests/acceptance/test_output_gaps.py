"""Output that is not all there: what is shown is exact, what is missing is told."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.service import finished, started
from tests.small_disk import needs_root, small_disk

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

MARK = re.compile(rb"\[forge-actors: (\d+) bytes of output were not kept\]\n")


def check_exact(seen: bytes, whole: bytes) -> int:
    """Each byte is in its place, the marks tell what is missing; the bytes missing."""
    pieces = MARK.split(seen)
    # A mark begins a line of its own, for which a newline may have been put in. Where
    # the output itself goes on with one, only what follows tells the two apart.
    places = {(0, 0)}
    for text, count in zip(pieces[::2], [*pieces[1::2], b"0"], strict=True):
        places = {
            (offset + len(kept) + int(count), gone + int(count))
            for offset, gone in places
            for kept in {text, text.removesuffix(b"\n")}
            if whole[offset : offset + len(kept)] == kept
        }
    [missing] = [gone for offset, gone in places if offset == len(whole)]
    return missing


def numbered(count: int) -> bytes:
    return b"".join(b"%08d\n" % number for number in range(1, count + 1))


def test_followers_slower_than_the_job_see_each_byte_once_or_a_mark(
    make_service: Callable[[str], LiveService],
) -> None:
    """L-06, with the ring in the place of a rotation; neither holds up the job."""
    service = make_service("[output]\nstream_bytes = 200000\n")
    service.start()
    service.add("app")
    gate, gate_two, bell = service.gate(), service.gate(), service.bell()
    script = (
        f"seq -f %08.0f 100; {gate.wait}; seq -f %08.0f 101 400000;"
        f"{bell.ring}; {gate_two.wait}; seq -f %08.0f 400001 400100"
    )
    job = service.bash("app", script)
    whole = numbered(400_100)
    words = ["--home", service.home, "logs", "-f", "--stream", "stdout", job]
    with started(*words) as first:
        assert first.stdout is not None
        begin = os.read(first.stdout.fileno(), 9)
        assert begin == b"00000001\n"
        gate.open()
        # Both read nothing until the job has printed all of this.
        bell.wait()
        with started(*words) as late:
            gate_two.open()
            assert service.end_of(job)["state"] == "succeeded"
            ends = [begin + finished(first).raw, finished(late).raw]
    for seen in ends:
        assert check_exact(seen, whole) > 0
        assert seen.endswith(whole[-1000:])
    assert check_exact(service.log(job), whole) == len(whole) - 200_000


@needs_root
def test_a_full_disk_in_the_middle_is_told_and_the_job_goes_on(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("")
    with small_disk(service.home / "logs", 200):
        service.start()
        service.add("app")
        gate, bell = service.gate(), service.bell()
        script = f"seq -f %08.0f 100000; {bell.ring}; {gate.wait}; echo more; exit 3"
        job = service.bash("app", script)
        bell.wait()
        whole = numbered(100_000) + b"more\n"
        with started("--home", service.home, "logs", "-f", job) as follower:
            assert follower.stdout is not None
            assert os.read(follower.stdout.fileno(), 9) == b"00000001\n"
            before = [cpu_ticks(pid) for pid in (service.pid, service.agent_pid)]
            pause = service.bash("app", "sleep 1", "--read-only")
            assert service.end_of(pause)["state"] == "succeeded"
            after = [cpu_ticks(pid) for pid in (service.pid, service.agent_pid)]
            # A follower that is woken for what it cannot read would take all of it.
            assert max(b - a for a, b in zip(before, after, strict=True)) < 40
            gate.open()
            end = service.end_of(job)
            seen = b"00000001\n" + finished(follower).raw
        assert (end["state"], end["exit_code"]) == ("failed", 3)
        assert "No space left on device" in end["problem"]
        assert str(service.home) not in end["problem"]
        lost = end["usage"]["stdout_lost"]
        assert lost > 500_000
        assert check_exact(seen, whole) == lost
        assert check_exact(service.log(job), whole) == lost
        tail = service.log(job, "--tail", "1")
        assert MARK.split(tail)[1] == b"%d" % lost
        assert "stdout_lost" in service.cli("show", job, status=0).out
        service.terminate()


def cpu_ticks(pid: int) -> int:
    """Hundredths of a second that a process has computed so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


@pytest.mark.parametrize("stream", ["stdout", "both"])
def test_a_follower_sees_all_of_each_attempt(service: LiveService, stream: str) -> None:
    """The next attempt prints less than the first, and then waits."""
    first, gate = service.gate(), service.gate()
    script = (
        f"if [ $FORGE_ATTEMPT = 1 ]; then {first.wait}; seq -f %08.0f 2 1000;"
        "kill -KILL $$; fi;"
        f"echo second; {gate.wait}; echo end"
    )
    script = f"if [ $FORGE_ATTEMPT = 1 ]; then echo 00000001; fi; {script}"
    job = service.bash("app", script, "--replay", "always", "--timeout", "60s")
    words = ["--home", service.home, "logs", "-f", "--stream", stream, job]
    mark = b"[forge-actors: attempt 2]\n"
    with started(*words) as follower:
        assert follower.stdout is not None
        seen = os.read(follower.stdout.fileno(), 9)
        first.open()
        while not seen.endswith(b"second\n"):
            piece = os.read(follower.stdout.fileno(), 4096)
            assert piece, "it ended before the job"
            seen += piece
        assert service.show(job)["finished_at"] is None
        gate.open()
        done = finished(follower)
    assert seen + done.raw == numbered(1000) + mark + b"second\nend\n"
    assert service.log(job) == b"second\nend\n"
