"""What jobs print: bounded, whole where it fits, and never a reason to stand still."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from tests.acceptance.bench import resident_kib
from tests.acceptance.service import finished, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

GIGABYTE = 1_000_000_000
HALF = 8 * 1024 * 1024
GROWTH_KIB = 5 * 1024

#: Prints its arguments and nothing else, each behind its length.
ECHO = """
import os, sys
for part in map(os.fsencode, sys.argv[1:]):
    os.write(1, b"%d:" % len(part) + part)
"""


def test_a_gigabyte_of_output_is_kept_at_both_ends_in_flat_memory(
    service: LiveService,
) -> None:
    """L-01: start and end are kept, what is missing is told, the code is right."""
    # What a first job makes them load is not growth.
    warm = service.bash("app", "yes | head -c 30000000")
    service.end_of(warm)
    service.log(warm)
    pids = (service.pid, service.agent_pid)
    before = [resident_kib(pid) for pid in pids]
    script = f"yes | head -c {GIGABYTE}; echo TAIL; exit 3"
    job = service.bash("app", script)
    end = service.end_of(job)
    assert (end["state"], end["exit_code"]) == ("failed", 3)
    assert end["usage"]["stdout_bytes"] == GIGABYTE + 5
    assert service.log(job, "--tail", "1") == b"TAIL\n"
    log = service.log(job)
    note = b"[forge-actors: %d bytes of output were not kept]\n"
    note %= GIGABYTE + 5 - 2 * HALF
    assert log == b"y\n" * (HALF // 2) + note + (b"y\n" * (HALF // 2))[5:] + b"TAIL\n"
    grown = [
        resident_kib(pid, "VmHWM") - was for pid, was in zip(pids, before, strict=True)
    ]
    assert max(grown) <= GROWTH_KIB
    kept = sum(file.stat().st_size for file in service.home.glob(f"logs/{job}*"))
    assert kept <= 2 * HALF + 4096


def test_a_job_past_its_limit_of_output_ends_in_its_own_time(
    make_service: Callable[[str], LiveService],
) -> None:
    """L-02: its pipe is always read."""
    service = make_service("[output]\nstream_bytes = 1048576\n")
    service.start()
    service.add("app")
    script = "head -c 10000000 /dev/zero | tr '\\0' x; echo; echo LAST; exit 3"
    job = service.bash("app", script)
    end = service.end_of(job)
    assert end["exit_code"] == 3
    log = service.log(job)
    assert log.endswith(b"xx\nLAST\n")
    [missing] = re.findall(rb"(\d+) bytes of output were not kept", log)
    assert int(missing) == 10_000_006 - 1048576


def test_a_line_of_five_megabytes_and_one_of_carriage_returns(
    service: LiveService,
) -> None:
    """L-03: a line may be of any length."""
    job = service.submit("--repo", "app", "--", "python3", "-c", "print('x' * 5000000)")
    bars = service.bash("app", r"for i in $(seq 9999); do printf '%d\r' $i; done")
    assert [end["state"] for end in service.wait(job, bars)] == ["succeeded"] * 2
    assert service.log(job) == b"x" * 5_000_000 + b"\n"
    assert service.log(job, "--tail", "1") == b"x" * 5_000_000 + b"\n"
    assert service.log(bars) == b"".join(b"%d\r" % i for i in range(1, 10_000))


def test_bytes_that_are_no_text_are_kept_as_they_are(service: LiveService) -> None:
    """L-04: raw bytes in the log, replacements where text is shown."""
    job = service.bash("app", r"printf 'a\xff\xfe\x00b\n'; printf '\x80' >&2")
    assert service.end_of(job)["state"] == "succeeded"
    assert service.log(job, "--stream", "stdout") == b"a\xff\xfe\x00b\n"
    assert service.log(job, "--stream", "stderr") == b"\x80"
    lines = service.cli("logs", "--json", "--stream", "stdout", job, status=0).out
    assert "".join(json.loads(line)["text"] for line in lines.splitlines()) == (
        "a\ufffd\ufffd\0b\n"
    )


def test_arguments_reach_the_program_byte_for_byte(service: LiveService) -> None:
    parts = [
        b"",
        b"two\nlines",
        b'it\'s "quoted" $(id) `id` \\n',
        b"--",
        b"--home",
        b"-x",
        "schön \N{SNOWMAN}".encode(),
        bytes(range(1, 256)),
        b"\xed\xa0\x80 \xc0\xaf",  # an encoded surrogate, and an overlong form
        b"x" * 100_000,
    ]
    job = service.submit("--repo", "app", "--", "python3", "-c", ECHO, *parts)
    assert service.end_of(job)["state"] == "succeeded"
    sent = b"".join(b"%d:" % len(part) + part for part in parts)
    assert service.log(job) == sent
    assert service.show(job)["argv"][4] == "two\nlines"


def test_a_follower_sees_output_as_it_comes_and_ends_with_the_job(
    service: LiveService,
) -> None:
    gate = service.gate()
    job = service.bash("app", f"echo one; echo two >&2; {gate.wait}; echo three")
    with started("--home", service.home, "logs", "-f", job) as follower:
        assert follower.stdout is not None
        seen = {follower.stdout.readline(), follower.stdout.readline()}
        assert seen == {b"one\n", b"two\n"}
        assert service.show(job)["finished_at"] is None
        gate.open()
        done = finished(follower)
    assert (done.status, done.raw) == (0, b"three\n")
    assert service.end_of(job)["state"] == "succeeded"
