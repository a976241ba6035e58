"""`watch` on a real terminal of 80 columns and 24 lines, in front of a real service."""

from __future__ import annotations

import os
import re
import signal
import sys
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.bench import marker
from tests.acceptance.screen import DOWN, ESCAPE, Terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.acceptance.service import LiveService

pytest.importorskip("textual", reason="NOT RUN: textual is not installed")

COLOR = re.compile(rb"\x1b\[(?:\d+;)*(?:3[0-7]|4[0-7]|9[0-7]|38;[25]|48;[25])[;m]")
EVIL = "evil\x1b[31m\x1b]0;title\x07\u202e[bold red]x[/]"


@pytest.fixture
def watch(service: LiveService) -> Iterator[Callable[..., Terminal]]:
    """Starts `watch` on a terminal."""
    made: list[Terminal] = []

    def start(**environ: str) -> Terminal:
        made.append(Terminal("watch", "--home", str(service.home), **environ))
        return made[-1]

    yield start
    for terminal in made:
        terminal.close()


def test_a_job_is_found_looked_at_and_cancelled(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    service.submit("--repo", "app", "--read-only", "--name", "good", "--", "true")
    script = f"echo hello from it; exec sleep {marker()}"
    job = service.bash("app", script, "--read-only", "--name", "sleeper")
    service.bash("app", f"exec sleep {marker()}", "--read-only", "--name", "other")
    terminal = watch()
    terminal.until("RUNNING 2", "workers [", "sleeper", "other")

    terminal.type("/")
    terminal.until("words that a job must have")
    terminal.type("sleep")
    terminal.until(lambda text: "other" not in text and "RUNNING 1" in text)
    terminal.type("\r")
    terminal.until("filter: sleep")

    terminal.type("\r")
    terminal.until("1 line, following", "\nhello from it\n")
    terminal.type("/")
    terminal.until(lambda text: text.endswith("\nsearch"))
    terminal.type("nowhere\r")
    terminal.until("nothing has 'nowhere'")
    terminal.type("q")
    terminal.until("filter: sleep")

    terminal.type("c")
    terminal.until("Cancel this job?")
    terminal.type("n")
    terminal.until(lambda text: "Cancel this job?" not in text)
    assert service.show(job)["state"] == "running"
    terminal.type("c")
    terminal.until("Cancel this job?")
    terminal.type("y")
    terminal.until("FINISHED 1")
    assert service.end_of(job)["state"] == "cancelled"
    terminal.until("c cancelled")

    terminal.type(ESCAPE)
    terminal.until("other")
    terminal.type("q")
    assert terminal.ended() == 0


def test_what_happens_is_seen_as_it_happens(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    terminal = watch()
    terminal.until("running 0")
    service.cli("pause", "--all", status=0)
    terminal.until("paused: all")
    service.bash("app", "read line", "--name", "reader")
    terminal.until("WAITING 1")
    terminal.until("reader")
    service.cli("resume", "--all", status=0)
    terminal.until(lambda text: "FINISHED 1" in text and "exit 1" in text)
    terminal.type("r")
    terminal.until("it runs again as")
    terminal.until(lambda text: "FINISHED 2" in text)
    service.cli("pause", "--all", status=0)
    terminal.until("paused: all")
    terminal.type("P")
    terminal.until("Let jobs start again?")
    terminal.type("y")
    terminal.until(lambda text: "paused: all" not in text)
    terminal.type("q")
    assert terminal.ended() == 0


def test_a_job_is_paused_and_goes_on(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    job = service.bash("app", f"exec sleep {marker()}", "--read-only")
    terminal = watch()
    terminal.until("> running")
    terminal.type("p")
    terminal.until("| paused")
    assert service.show(job)["paused"]
    terminal.type("p")
    terminal.until("> running")
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("number", "status"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
)
def test_a_signal_leaves_the_terminal_as_it_was(
    watch: Callable[..., Terminal], number: signal.Signals, status: int
) -> None:
    terminal = watch()
    terminal.until("running 0")
    assert terminal.settings() != terminal.before
    terminal.child.send_signal(number)
    assert terminal.ended() == status


def test_ctrl_c_leaves_too(watch: Callable[..., Terminal]) -> None:
    terminal = watch()
    terminal.until("running 0")
    terminal.type("\x03")
    assert terminal.ended() == 130


def test_it_can_be_stopped_and_goes_on(watch: Callable[..., Terminal]) -> None:
    terminal = watch()
    terminal.until("running 0")
    terminal.type("\x1a")
    terminal.stopped()
    assert terminal.settings() == terminal.before
    terminal.screen.reset()
    os.kill(terminal.child.pid, signal.SIGCONT)
    terminal.until("running 0")
    terminal.type("q")
    assert terminal.ended() == 0


def test_it_follows_the_size_of_the_terminal(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    service.bash("app", f"exec sleep {marker()}", "--name", "n" * 70)
    terminal = watch()
    terminal.until("n" * 20)
    terminal.resize(120, 30)
    terminal.until("n" * 45)
    terminal.resize(40, 10)
    terminal.until(lambda text: "nnnn" in text and "It runs as" not in text)
    terminal.resize(80, 24)
    terminal.until("It runs as process")
    terminal.type("q")
    assert terminal.ended() == 0


def test_it_needs_no_colours(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    service.cli("wait", service.submit("--repo", "app", "--", "false"))
    colored = watch()
    colored.until("x failed")
    colored.type("q")
    assert colored.ended() == 0
    assert COLOR.search(colored.printed)
    plain = watch(NO_COLOR="1")
    plain.until("x failed")
    plain.type(f"{DOWN}q")
    assert plain.ended() == 0
    assert not COLOR.search(plain.printed)


def test_names_and_output_steer_nothing(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    service.add("app")
    printed = "printf 'a\\033[2Jb\\033]0;title\\007c\\342\\200\\256d [bold]e[/]\\n'"
    script = f"{printed}; exec sleep {marker()}"
    service.bash("app", script, "--read-only", "--name", EVIL)
    terminal = watch()
    terminal.until("evil[bold red]x[/]")
    terminal.type("\r")
    terminal.until("1 line, following", "\nabcd [bold]e[/]\n")
    assert "\u202e" not in terminal.text()
    assert b"title\x07" not in terminal.printed
    terminal.type("qq")
    assert terminal.ended() == 0


def test_it_waits_for_a_service_that_ended(
    service: LiveService, watch: Callable[..., Terminal]
) -> None:
    terminal = watch()
    terminal.until("ready")
    service.end()
    terminal.until(lambda text: "ended" in text or "no service runs" in text)
    service.start()
    terminal.until(lambda text: "forge-actors  ready" in text)
    terminal.type("q")
    assert terminal.ended() == 0


def test_an_error_of_its_own_is_one_line_on_a_terminal_as_it_was(
    service: LiveService,
) -> None:
    code = (
        "import sys\n"
        "from forge_actors.cli.dashboard import words\n"
        "words.heading = None\n"
        "from forge_actors.cli.main import main\n"
        "sys.exit(main())"
    )
    service.add("app")
    service.bash("app", f"exec sleep {marker()}")
    words = ("watch", "--home", str(service.home))
    terminal = Terminal(*words, program=(sys.executable, "-c", code))
    try:
        assert terminal.ended() == 1
        left = terminal.printed.rpartition(b"\x1b[?1049l")[2]
        assert b"forge-actors: internal error: TypeError" in left
        assert b"Traceback" not in terminal.printed
    finally:
        terminal.close()


@pytest.mark.parametrize("kind", ["dumb", ""])
def test_a_terminal_that_cannot_draw_is_refused(
    watch: Callable[..., Terminal], kind: str
) -> None:
    terminal = watch(TERM=kind)
    assert terminal.ended() == 2
    assert b"events -f" in terminal.printed


def test_without_a_terminal_it_says_what_to_do_instead(service: LiveService) -> None:
    done = service.cli("watch", status=2)
    assert "watch needs a terminal; `forge-actors jobs --active`" in done.err
    done = service.cli("watch", "--json", status=2)
    assert "events -f --json" in done.err


def test_without_a_service_it_says_so(watch: Callable[..., Terminal]) -> None:
    terminal = Terminal("watch", "--home", "/nonexistent/forge")
    try:
        assert terminal.ended() == 4
        assert b"no service runs on" in terminal.printed
    finally:
        terminal.close()
