"""Reading and following the output of jobs of a running service."""

from __future__ import annotations

import json
import re
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import resident_kib
from tests.acceptance.service import finished, started

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.acceptance.service import LiveService

GROWTH_KIB = 50 * 1024


def test_follow_of_none_is_a_usage_error(service: LiveService) -> None:
    """C-08: it never picks a job by itself."""
    service.end_of(service.submit("--repo", "app", "--", "true"))
    done = service.cli("logs", "-f")
    assert (done.status, done.out) == (2, "")
    assert "no job is selected" in done.err


def test_one_job_is_followed_from_its_queue_to_its_end(
    make_service: Callable[[str], LiveService],
) -> None:
    """C-08: a queued job from its start, its end by itself, an ended one at once."""
    service = make_service("[limits]\nworkers = 1\n")
    service.start()
    service.add("app")
    gate = service.gate()
    blocker = service.bash("app", gate.wait)
    job = service.bash("app", "echo first; echo second >&2; exit 3")
    with started("logs", "-f", job, "--home", service.home) as follower:
        gate.open()
        done = finished(follower)
    assert (done.status, done.err) == (0, "")
    assert sorted(done.raw.splitlines()) == [b"first", b"second"]
    assert service.cli("logs", "-f", job).raw == done.raw
    assert service.cli("logs", "-f", "--tail", "0", job).raw == b""
    assert service.log(blocker) == b""


def test_three_jobs_are_followed_until_the_last_has_ended(service: LiveService) -> None:
    """C-08: a prefix per job."""
    gates = [service.gate() for _ in range(3)]
    jobs = [
        service.bash(
            "app",
            f"echo begin {n}; {gate.wait}; printf 'end {n}'",
            *("--read-only", "--name", f"job-{n}"),
        )
        for n, gate in enumerate(gates)
    ]
    ended = service.bash("app", "echo over", "--read-only", "--name", "ended")
    service.end_of(ended)
    words = ("logs", "-f", *jobs, ended, "--home", service.home)
    with started(*words) as follower:
        for job, gate in zip(jobs, gates, strict=True):
            gate.open()
            service.end_of(job)
        done = finished(follower)
    assert (done.status, done.err) == (0, "")
    assert sorted(done.out.splitlines()) == [
        "ended | over",
        *(f"job-{n} | {word} {n}" for n in range(3) for word in ("begin", "end")),
    ]


def test_a_follower_of_a_job_that_is_tried_again_sees_every_attempt(
    service: LiveService,
) -> None:
    script = 'echo "this is $FORGE_ATTEMPT"; test $FORGE_ATTEMPT = 3'
    job = service.bash("app", script, "--replay", "always", "--max-attempts", "3")
    with started("logs", "-f", job, "--home", service.home) as follower:
        done = finished(follower)
    lines = done.out.splitlines()
    assert lines[-1] == "this is 3"
    wanted = []
    for attempt in (1, 2, 3):
        wanted += [f"[forge-actors: attempt {attempt}]", f"this is {attempt}"]
    assert lines == wanted[-len(lines) :]
    for attempt in ("1", "2", "3"):
        log = service.log(job, "--attempt", attempt)
        assert log == f"this is {attempt}\n".encode()
    assert service.cli("logs", "--attempt", "4", job).status == 2


def test_a_follower_across_the_gap_is_told_how_much_is_missing(
    make_service: Callable[[str], LiveService],
) -> None:
    service = make_service("[output]\nstream_bytes = 65536\n")
    service.start()
    service.add("app")
    job = service.bash("app", "yes 0123456 | head -c 4000000; echo LAST")
    service.end_of(job)
    log = service.cli("logs", "-f", "--stdout", job).raw
    note = re.compile(
        rb"^\[forge-actors: (\d+) bytes of output were not kept\]\n", re.MULTILINE
    )
    assert note.findall(log) == [b"%d" % (4_000_005 - 65_536)]
    kept = note.sub(b"", log)
    assert len(kept) in (65_536, 65_537)  # a line that was cut is ended
    assert kept.endswith(b"0123456\nLAST\n")
    middle = service.cli("logs", "--stdout", "--bytes", "32768-40000", job).raw
    assert middle == b"[forge-actors: 7233 bytes of output were not kept]\n"
    assert service.cli("logs", "--stdout", "--bytes", "-5", job).raw == b"LAST\n"


def test_every_tail_of_four_byte_characters(service: LiveService) -> None:
    """L-05: at most the first character is replaced."""
    job = service.submit("--repo", "app", "--", "printf", "%s", "\N{ROCKET}" * 30)
    service.end_of(job)
    raw = ("\N{ROCKET}" * 30).encode()
    for size in range(1, 51):
        done = service.cli("logs", "--stdout", f"--bytes=-{size}", job, status=0)
        assert done.raw == raw[-size:]
        words = ("logs", "--stdout", f"--bytes=-{size}", job, "--json")
        text = json.loads(service.cli(*words, status=0).out)["text"]
        replaced = "\N{REPLACEMENT CHARACTER}" * (size % 4 > 0)
        assert text == replaced + "\N{ROCKET}" * (size // 4)


def test_the_last_lines_of_a_long_log_are_read_from_its_end(
    service: LiveService,
) -> None:
    """L-12: ten clients at once, other calls stay fast, memory stays flat."""
    job = service.bash("app", "yes 'a line of the log' | head -c 200000000; echo END")
    service.end_of(job)
    service.log(job, "--tail", "100")
    before = resident_kib(service.pid)
    found: list[bytes] = []
    threads = [
        threading.Thread(target=lambda: found.append(service.log(job, "--tail", "100")))
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    assert service.json("status")["ready"]
    for thread in threads:
        thread.join()
    assert len(found) == 10
    assert set(found) == {b"a line of the log\n" * 98 + found[0][98 * 18 :]}
    assert found[0].endswith(b"END\n")
    assert resident_kib(service.pid, "VmHWM") - before <= GROWTH_KIB


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_output_since_a_time_leaves_out_what_came_before(
    service: LiveService, stream: str
) -> None:
    gate = service.gate()
    script = f"echo early; {gate.wait}; sleep 1.2; echo middle; echo late"
    job = service.bash("app", f"{{ {script}; }} >&{1 if stream == 'stdout' else 2}")
    with started("--home", service.home, "logs", "-f", job) as follower:
        assert follower.stdout is not None
        assert follower.stdout.readline() == b"early\n"
        # What came before is told from it to the second.
        moment = (datetime.now(UTC) + timedelta(seconds=1.1)).isoformat()
        gate.open()
        assert finished(follower).raw == b"middle\nlate\n"
    flag = f"--{stream}"
    assert service.log(job, flag, "--since", "1h") == b"early\nmiddle\nlate\n"
    assert service.log(job, flag, "--since", "2000-01-01T00:00:00Z") == (
        b"early\nmiddle\nlate\n"
    )
    assert service.log(job, flag, "--since", moment) == b"middle\nlate\n"
    assert service.log(job, flag, "--since", "2999-01-01T00:00:00Z") == b""
