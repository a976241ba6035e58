"""Runs the tests that reach a mutant, in a process of its own."""

from __future__ import annotations

import math
import os
import resource
import select
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import psutil
from mutmut.__main__ import collect_or_load_stats, create_mutants
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.state import state
from mutmut.utils.file_utils import (
    copy_also_copy_files,
    copy_src_dir,
    setup_source_paths,
)
from mutmut.workers.isolation import ForkRunner, get_mutant_runner

from mutation import PLACE, Wrong
from mutation.mutants import Mutant

AT_ONCE = 2
#: What a mutant is tried with at first: its cheapest tests that take as long together.
CHEAP_SECONDS = 2.0
#: The others follow if none of those fails, the cheapest first, as many as take this.
LONGEST_SECONDS = 15.0
#: A mutant that computes for ever has this much of what its tests take, and seconds.
TIMES_CPU, MORE_CPU = 5, 5
#: One that has slept from one look to the next, and done nothing, waits for ever.
LOOK_SECONDS = 20.0
#: So many are tried first with nothing broken, and have to survive.
CONTROLS = 10

#: A mutant, the tests that come first, and those that follow.
Wanted = tuple[Mutant, list[str], list[str]]

KILLED, TIMEOUT, SURVIVED, NO_TESTS = "killed", "timeout", "survived", "no tests"


@dataclass
class _Try:
    mutant: Mutant
    rest: list[str]
    begun: float
    #: What is open stays this process; its number may be another's once it is let go.
    pidfd: int
    process: psutil.Process
    looked: float
    spent: float = -1.0

    def sleeps(self, now: float) -> bool:
        """Whether it did nothing since the last look, and waits still."""
        if now - self.looked < LOOK_SECONDS:
            return False
        times = self.process.cpu_times()
        spent = times.user + times.system
        asleep = self.process.status() == psutil.STATUS_SLEEPING
        idle = asleep and spent == self.spent
        self.looked, self.spent = now, spent
        return idle


def prepare() -> ForkRunner:
    """Make all mutants and find the tests of each function, as far as not known yet."""
    PLACE.mkdir(exist_ok=True)
    set_mutant_under_test("mutant_generation")
    copy_src_dir()
    copy_also_copy_files()
    setup_source_paths()
    create_mutants(AT_ONCE)
    runner = get_mutant_runner(AT_ONCE)
    collect_or_load_stats(runner)
    return runner


class Tests:
    """Which tests reach a function, and what each costs."""

    def __init__(self) -> None:
        # They were timed by the clock of a machine that did other things as well.
        whole = sum(state().duration_by_test.values())
        spent = state().stats_time
        self._share = min(1.0, spent / whole) if spent and whole else 1.0

    def seconds(self, test: str) -> float:
        return float(state().duration_by_test[test]) * self._share

    def of(self, mutant: Mutant) -> tuple[list[str], list[str]]:
        """The tests that come first, and those that follow if none of them fails."""
        known = state().tests_by_mangled_function_name.get(mutant.function, set())
        tests = sorted(known, key=lambda test: (self.seconds(test), test))
        cheap = self._within(tests, CHEAP_SECONDS)
        return tests[:cheap], tests[cheap : self._within(tests, LONGEST_SECONDS)]

    def _within(self, tests: list[str], most: float) -> int:
        spent = 0.0
        for number, test in enumerate(tests):
            spent += self.seconds(test)
            if spent > most and number:
                return number
        return len(tests)


def try_all(
    runner: ForkRunner,
    mutants: Sequence[Mutant],
    found: Callable[[Mutant, str, float], None],
) -> None:
    """Try each, two at a time, and tell what came of it as soon as it is known."""
    tests = Tests()
    controls: list[Wanted] = [
        (replace(mutant, name=""), tests.of(mutant)[0], [])
        for mutant in mutants[:CONTROLS]
    ]
    _try(runner, tests, controls, _unharmed)
    _try(runner, tests, [(mutant, *tests.of(mutant)) for mutant in mutants], found)


def _unharmed(_: Mutant, verdict: str, __: float) -> None:
    if verdict not in {SURVIVED, NO_TESTS}:
        raise Wrong("tests fail where nothing is broken; `make test` says which")


def _try(
    runner: ForkRunner,
    tests: Tests,
    wanted: Iterable[Wanted],
    found: Callable[[Mutant, str, float], None],
) -> None:
    waiting = deque(wanted)
    running: dict[int, _Try] = {}
    poll = select.poll()
    while waiting or running:
        while waiting and len(running) < AT_ONCE:
            mutant, first, rest = waiting.popleft()
            if not first:
                found(mutant, NO_TESTS, 0.0)
                continue
            usual = sum(tests.seconds(test) for test in first)
            pid = _begin(runner, mutant.name, first, usual)
            now = time.monotonic()
            one = _Try(mutant, rest, now, os.pidfd_open(pid), psutil.Process(pid), now)
            running[one.pidfd] = one
            poll.register(one.pidfd, select.POLLIN)
        ended = {pidfd for pidfd, _ in poll.poll(LOOK_SECONDS * 1000)}
        for pidfd, one in list(running.items()):
            if pidfd not in ended:
                if not one.sleeps(time.monotonic()):
                    continue
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            verdict = _verdict(os.waitid(os.P_PIDFD, pidfd, os.WEXITED))
            poll.unregister(pidfd)
            os.close(running.pop(pidfd).pidfd)
            if verdict == SURVIVED and one.rest:
                waiting.appendleft((one.mutant, one.rest, []))
            else:
                found(one.mutant, verdict, time.monotonic() - one.begun)


def _begin(runner: ForkRunner, name: str, tests: list[str], usual: float) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        set_mutant_under_test(name)
        limit = math.ceil(time.process_time() + usual * TIMES_CPU) + MORE_CPU
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1))
        with open(os.devnull, "r+b", buffering=0) as quiet:
            os.dup2(quiet.fileno(), 1)
            os.dup2(quiet.fileno(), 2)
        code = runner.test_runner.run_tests(mutant_name=name, tests=tests)
    finally:
        os._exit(code)


def _verdict(status: os.waitid_result | None) -> str:
    assert status is not None
    if status.si_code == os.CLD_EXITED:
        return KILLED if status.si_status else SURVIVED
    if status.si_status in {signal.SIGXCPU, signal.SIGKILL}:
        return TIMEOUT
    return KILLED
