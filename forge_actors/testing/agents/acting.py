"""What the programs that play agents have in common. Only the standard library, as they
are started as often as a test needs one.

Scenes: `success`, `empty` (a good end without a word), `acts` (with a command),
`limit` (the account is spent until `reset`), `rate`, `overload`, `auth`, `budget`,
`error`, `error_exit_0`, `failed_silently` (exit 3, no last event), `no_end` (exit 0, no
last event), `partial` (the last line is cut), `works` (until a signal), `stays` (it
does not leave after its good end), `grandchild` (it leaves a process in a session of
its own), `long_line` (of 10 MB), `noise` (no events, and bytes that are no text),
`leaks` (it prints its environment), `echoes` (its answer is its prompt and, in
brackets, the session that it resumed), `forgets` (the same, but it knows no session,
though its files are there, and says so behind the gate), `asks` (a person, its text;
once it resumes a session it echoes; only Claude Code).
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

LONG = 10_000_000
#: The process that a scene leaves behind.
GRANDCHILD = ("sleep", "4712.5")


@dataclass(frozen=True)
class Scene:
    """What to play."""

    name: str = "success"
    text: str = "done"
    #: When the limit ends, in seconds since 1970.
    reset: int = 0
    #: Seconds that it waits where the real program tries again for a minute, or holds a
    #: signal back until a call returns.
    wait: float = 0.2
    #: A named pipe: before it ends it waits until that was opened and closed again.
    gate: str = ""
    #: A command for the shell that it runs before it ends.
    runs: str = ""
    #: A file that it writes before it ends, in the folder that it runs in.
    file: str = ""
    #: Whether it says that it is logged in.
    logged_in: bool = True


class Stage:
    """One run of a program: its scene, its arguments, its prompt and its sessions."""

    def __init__(self, home: tuple[str, str], session_file: str) -> None:
        #: The variable and the default of its folder, and where in it sessions are.
        self.home = home
        self.session_file = session_file
        self.path = Path(sys.argv[1])
        self.arguments = sys.argv[2:]
        self.prompt = ""
        self.scene = self._scene(self.path.with_name(f"{self.path.name}.scene"))

    def read_prompt(self) -> None:
        """Take the whole input as the prompt, as soon as it ends."""
        self.prompt = sys.stdin.read()
        for line in self.prompt.splitlines():
            if line.startswith("scene: "):
                self.scene = Scene(**json.loads(line.removeprefix("scene: ")))

    def _scene(self, path: Path) -> Scene:
        with suppress(FileNotFoundError):
            return Scene(**json.loads(path.read_text()))
        return Scene()

    def answer(self, resumed: str | None) -> str:
        """The words of its answer."""
        again = self.scene.name == "asks" and resumed
        if self.scene.name in ("echoes", "forgets") or again:
            return f"{self.prompt.strip()} [{resumed or ''}]"
        return self.scene.text

    def option(self, *names: str) -> str | None:
        """The value of an option, written `--name value` or `--name=value`."""
        for index, argument in enumerate(self.arguments):
            for name in names:
                if argument == name:
                    return "".join(self.arguments[index + 1 : index + 2])
                if argument.startswith(f"{name}="):
                    return argument.removeprefix(f"{name}=")
        return None

    def knows(self, session: str) -> bool:
        if self.scene.name == "forgets":
            self._wait()
            return False
        return any(self._files(session))

    def remember(self, session: str, **state: Any) -> None:
        """Keep a session where the real program keeps it."""
        known = next(self._files(session), None)
        path = known or self._folder() / self.session_file.format(session=session)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(state))

    def recall(self, session: str) -> dict[str, Any]:
        state: dict[str, Any] = json.loads(next(self._files(session)).read_text())
        return state

    def _files(self, session: str) -> Iterator[Path]:
        return self._folder().glob(self.session_file.format(session=session))

    def _folder(self) -> Path:
        variable, default = self.home
        named = os.environ.get(variable)
        return Path(named) if named else Path.home() / default

    def before_the_end(self) -> None:
        """What the scenes do that have nothing to do with an agent."""
        if self.scene.name != "forgets":
            self._wait()
        if self.scene.runs:
            subprocess.run(["sh", "-c", self.scene.runs], check=True)
        if self.scene.file:
            Path(self.scene.file).write_text("made\n")
        match self.scene.name:
            case "grandchild":
                # Its output is not ours, so that nobody waits for its end.
                null = subprocess.DEVNULL
                subprocess.Popen(
                    GRANDCHILD, start_new_session=True, stdout=null, stderr=null
                )
            case "noise":
                complain("warning: something of no interest")
                sys.stdout.flush()
                sys.stdout.buffer.write(
                    b'not an event\n\xff\xfe\x00\n{"type": 1}\n[]\n'
                )
                sys.stdout.buffer.write(b'{"type":"\xff"}\n\n')
            case "leaks":
                complain(json.dumps(dict(os.environ)))
                print(json.dumps(dict(os.environ)), flush=True)
            case "failed_silently":
                complain("something broke")
                leave(3)
            case "no_end":
                leave(0)
            case "partial":
                sys.stdout.write('{"type":"result","subtype":"succ')
                leave(0)
            case _:
                pass

    def _wait(self) -> None:
        if self.scene.gate:
            Path(self.scene.gate).read_bytes()

    def after_the_end(self) -> None:
        sys.stdout.flush()
        if self.scene.name == "stays":
            work()


def tell(event: dict[str, Any]) -> None:
    """Print an event, at once."""
    sys.stdout.write(
        json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"
    )
    sys.stdout.flush()


def complain(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def leave(status: int) -> NoReturn:
    """Exit at once, also out of the handler of a signal."""
    with suppress(OSError, RuntimeError):
        sys.stdout.flush()
    os._exit(status)


def die_of(number: int) -> NoReturn:
    """End as the default of a signal has it."""
    signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    time.sleep(60)
    raise AssertionError("the signal ends us")


def work() -> NoReturn:
    """Work on, until a signal ends it."""
    # `signal.pause` would sleep through one that comes just before it.
    woken, waking = os.pipe()
    os.set_blocking(waking, False)
    signal.set_wakeup_fd(waking)
    while True:
        os.read(woken, 1)
