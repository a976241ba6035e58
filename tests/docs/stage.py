"""Where the commands of the pages run: a service, a repository, agents that play.

What is there when a block runs follows from its clauses:

    ID waits | runs | ended | failed | worked      a job so, where the page says ID; one
                                                   that worked did so in a worktree
    ID waits for a heavy check                     behind two of them
    no service                                     none runs, and the block starts none
    in a new home                                  which is thrown away after it
    as a job                                       all of it is the command of one
    the file above is NAME                         the TOML block before it
    WORKFLOW asks                                  a step of it waits for an answer
    a repository NAME                              one more
    a setting has changed                          in the file
    a trusted template                             `test`, in the repository
    exits N                                        in place of 0, each command
"""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from forge_actors.testing.agents import install
from tests.acceptance import inside
from tests.acceptance.bench import Gate
from tests.acceptance.service import CALL_SECONDS, PROGRAM, LiveService
from tests.docs.blocks import commands_of
from tests.docs.not_run import COMMENT, look_at, reason_not_to_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.docs.blocks import Block, Command

SETTINGS = """
[limits]
workers = 50
heavy_checks = 2
agents = 20
[providers.claude]
limit = 10
[providers.codex]
limit = 10
"""
TEMPLATE = """
[[template]]
name = "test"
parameters = { part = { default = "all", choices = ["all", "fast"] } }
job = { argv = ["echo", "${part}"], kind = "check" }
"""
ASKS = """
[workflow]
name = "{}"
repo = "app"
[[step]]
name = "ask"
gate = "Go on?"
"""
MAKEFILE = """\
test lint dist release release-notes deploy generated fix-docs:
\t@echo made $@
report:
\t@mkdir -p report && echo fine > report/all.txt
fix:
\t@echo better >> fixed.txt
broken:
\t@exit 2
"""
_ID = re.compile(r"\b(?=\w*\d)[0-9a-z]{4}\b|\b1m8[0-9a-z]{16}\b")
_SHELL = re.compile(r"[|<>&;$`*~(]")
_FILE = re.compile(r"(.*?) ([<>]) (\S+)$")
#: Words of an answer that are the same whatever job, time and machine it is about.
_WORD = re.compile(r"(?<![\w.-])[A-Za-z][a-z]+(?![\w.-]*\d)")


class Ran(NamedTuple):
    status: int
    out: str
    err: str


class Stage(LiveService):
    """All that the pages take for granted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(SETTINGS)
        self.app = self.root / "src/app"
        self._patch = monkeypatch
        self._jobs: dict[str, str] = {}
        self._gate: Gate | None = None
        self._status = 0
        self._runs = False
        self._tests = 0
        self._workers = 50
        programs = self.root / "programs"
        for name in ("claude", "codex"):
            install(programs, name).play("success", text="All tests pass.")
        path = f"{programs}:{Path(PROGRAM).parent}:{os.environ['PATH']}"
        self._set(HOME=self.root, PATH=path, FORGE_CONTROLLER_HOME=self.home)
        monkeypatch.setattr(tempfile, "tempdir", str(self.root))
        # Programs that embed a runtime have no settings of this home.
        self._set(FORGE_MAX_LOAD_PER_CPU=10_000, FORGE_MIN_FREE_MEMORY_MB=64)
        for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"):
            monkeypatch.delenv(name, raising=False)
        self._make_app()

    def _set(self, **variables: object) -> None:
        for name, value in variables.items():
            self._patch.setenv(name, str(value))

    def _make_app(self) -> None:
        self.app.mkdir(parents=True)
        # Jobs have none of the variables that tell our own git who it is.
        who = "[user]\nname = Test\nemail = test@example.invalid\n"
        (self.root / ".gitconfig").write_text(who)
        origin = self.root / "origin.git"
        self.git("init", "--quiet", "--bare", "--initial-branch=main", origin)
        self.git("init", "--quiet", "--initial-branch=main", self.app)
        (self.app / "Makefile").write_text(MAKEFILE)
        (self.app / "task.md").write_text("Make the tests pass.\n")
        line = '{"repo": "app", "argv": ["make", "test"], "kind": "check"}\n'
        (self.app / "jobs.jsonl").write_text(line * 2)
        (self.app / "token.txt").write_text("a value of some length\n")
        (self.app / ".gitignore").write_text("report/\n*.sqlite\n*.tar\n*.html\n")
        for words in (
            ("remote", "add", "origin", origin),
            ("add", "."),
            ("commit", "--quiet", "-m", "first"),
            ("tag", "first"),
            ("push", "--quiet", "-u", "origin", "main"),
        ):
            self.git("-C", self.app, *words)

    # -- a block ---------------------------------------------------------------------

    @contextlib.contextmanager
    def ready_for(self, block: Block, above: str) -> Iterator[None]:
        """What its clauses say is there; afterwards nothing of it is left."""
        os.chdir(self.app)
        self._jobs, self._status = {}, 0
        home = self.home
        try:
            if {"in a new home", "in an empty home"} & {*block.clauses}:
                self._end()
                self.home = self.root / f"home-{block.line}"
                if "in a new home" in block.clauses:
                    self.home.mkdir(mode=0o700)
                    self.write_settings((home / "settings.toml").read_text())
                    self._serve()
                self._set(FORGE_CONTROLLER_HOME=self.home)
            elif "no service" not in block.clauses and _asks_something(block):
                self._serve()
            for clause in block.clauses:
                self._meet(clause, above)
            yield
        finally:
            if not self.app.exists():
                (self.root / "moved/app").rename(self.app)
                self.cli("repo", "relocate", "app", self.app, status=0)
            self._clear()
            if self.home != home:
                self._end()
                self.home = home
                self._set(FORGE_CONTROLLER_HOME=home)

    def _meet(self, clause: str, above: str) -> None:
        if clause.startswith("exits "):
            self._status = int(clause.split()[1])
        elif clause == "no service":
            self._end()
        elif clause.startswith("the file above is "):
            Path(clause.split()[-1]).write_text(above)
        elif clause == "a setting has changed":
            file = self.home / "settings.toml"
            self._workers += 1
            text = re.sub(
                r"workers = 5\d", f"workers = {self._workers}", file.read_text()
            )
            self.write_settings(text)
        elif clause == "a trusted template":
            (self.app / ".forge").mkdir(exist_ok=True)
            (self.app / ".forge/parts.toml").write_text(TEMPLATE)
            self.cli("repo", "trust", "app", "--yes", status=0)
        elif clause.startswith("a repository "):
            self.add(clause.split()[-1])
        elif clause.endswith(" asks"):
            self._ask(clause.split()[0], above)
        elif clause.startswith("the checkout moves to "):
            place = Path(os.path.expanduser(clause.split()[-1]))
            place.parent.mkdir()
            self.app.rename(place)
        elif clause not in ("in a new home", "in an empty home", "as a job"):
            name, state = clause.split(" ", 1)
            self._jobs[name] = self._job(state)

    def _serve(self) -> None:
        if not self._runs:
            self._runs = True
            self.start()
        if not any(known["name"] == "app" for known in self.json("repo", "list")):
            self.cli("repo", "add", self.app, "--name", "app", status=0)

    def _end(self) -> None:
        if self._runs:
            self._runs = False
            self.cli("stop", "--jobs")

    def _clear(self) -> None:
        """End what still runs or waits, and all that somebody has said."""
        if self._gate is not None:
            self._gate.open()
            self._gate = None
        if self._runs:
            for words in (
                ("policy", "normal"),
                ("resume", "--all"),
                ("resume", "--repo", "app", "--provider", "claude"),
                ("cancel", "--repo", "app", *_NOT_ENDED),
            ):
                self.cli(*words)
            self.cli("wait", "--repo", "app", "--timeout", "20s")
            for schedule in self.json("schedule", "list"):
                self.cli("schedule", "remove", schedule["name"])
        self.git("-C", self.app, "reset", "--quiet", "--hard", "first")
        self.git("-C", self.app, "clean", "-fdq")

    # -- jobs ------------------------------------------------------------------------

    def _job(self, state: str) -> str:
        match state:
            case "ended":
                job = self.submit(
                    *("--repo", "app", "--kind", "check", "--artifact", "report/*"),
                    *("--", "make", "report"),
                )
                self.end_of(job)
            case "failed":
                job = self.submit("--repo", "app", "--", "make", "broken")
                self.end_of(job)
            case "runs":
                job = self._held("--read-only")
                self.pid_of(job)
            case "waits":
                self._held()
                job = self.submit("--repo", "app", "--", "make", "test")
            case "waits for a heavy check":
                for job in [self._held("--kind", "check") for _ in range(2)]:
                    self.pid_of(job)
                words = ("--kind", "check", "--", "make", "test")
                job = self.submit("--repo", "app", *words)
            case "worked":
                commit = "echo 1 > new.txt && git add . && git commit -qm new"
                words = ("--isolate", "--", "sh", "-c", commit)
                job = self.submit("--repo", "app", *words)
                assert self.end_of(job)["state"] == "succeeded"
            case "works":
                runs = "echo 1 > agent.txt; git add .; git commit -qm agent"
                scene = f'scene: {{"runs": "{runs}", "text": "Done."}}'
                words = ("--isolate", "--agent", "claude", "--prompt", scene)
                job = self.submit("--repo", "app", *words)
                assert self.end_of(job)["state"] == "succeeded"
            case _:
                raise ValueError(f"no job is {state!r}")
        return job

    def _held(self, *options: str) -> str:
        if self._gate is None:
            number = len(list(self.root.glob("gate*")))
            self._gate = Gate(self.root / f"gate-{number}")
        return self.bash("app", self._gate.wait, *options)

    def _ask(self, workflow: str, above: str) -> None:
        file = self.app / "asks.toml"
        file.write_text(above if f'"{workflow}"' in above else ASKS.format(workflow))
        began = self.cli("workflow", "run", file, status=0).out.strip()
        for entry in self.follow():
            if entry.kind == "workflow_asks" and entry.data["workflow"] == began:
                return
        raise AssertionError(f"{workflow} asked nothing")

    # -- commands --------------------------------------------------------------------

    def run(self, block: Block, command: Command) -> None:
        """Run it as the page has it; it ends as the page says."""
        text = COMMENT.sub("", command.text).strip()
        text = _ID.sub(lambda found: self._jobs.get(found[0], found[0]), text)
        if reason_not_to_run(text):
            look_at(text)
            return
        if text.startswith("cd "):
            os.chdir(os.path.expanduser(text[3:]))
            return
        self._before(text)
        if text == "forge-actors serve --detach":
            self._serve()  # the same without another interpreter
            return
        ran = self._run(text)
        assert ran.status == self._status, f"{block}: {text}\n{ran.out}{ran.err}"
        self._after(text)
        for line in command.shown:
            words = _WORD.findall(line)
            told = iter(_WORD.findall(ran.out + ran.err))
            missing = [word for word in words if word not in told]
            assert not missing, f"{block}: {line}: {missing} in {ran.out}{ran.err}"

    def _before(self, text: str) -> None:
        if text.startswith("forge-actors serve"):
            self._end()
        elif "stop" in text.split()[:2] and not self._runs:
            self._serve()

    def _after(self, text: str) -> None:
        if text.startswith("forge-actors stop"):
            self._runs = False
            self.cli("stop", "--jobs")

    def _run(self, text: str) -> Ran:
        file, way, place = "", "", ""
        if found := _FILE.match(text):
            file, way, place = found.groups()
        plain = file or text
        words = [os.path.expanduser(word) for word in shlex.split(plain)]
        simple = not _SHELL.search(re.sub(r"'[^']*'|~/", "", plain))
        if words[0] != "forge-actors" or not inside.is_possible(words[1]) or not simple:
            return _shell(text)
        stdin = Path(place).read_bytes() if way == "<" else b""
        words = [re.sub(r"=~/", f"={self.root}/", word) for word in words[1:]]
        status, out, err = inside.run(words, stdin)
        if way == ">":
            Path(place).write_bytes(out)
        return Ran(status, out.decode(), err.decode())

    def script(self, block: Block) -> None:
        """Run all of a block as one script."""
        if "as a job" in block.clauses:
            file = self.app / "script"
            file.write_text(block.text)
            job = self.submit("--repo", "app", "--", "sh", "-e", str(file))
            view = self.end_of(job)
            assert view["state"] == "succeeded", f"{block}: {self.log(job).decode()}"
            return
        text = "\n".join(command.text for command in commands_of(block))
        ran = _shell(f"set -e\n{text}")
        assert ran.status == 0, f"{block}: {ran.out}{ran.err}"

    def test(self, block: Block) -> None:
        """Run its tests, as a project of somebody else would, but in this process."""
        self._tests += 1
        file = self.root / f"project/test_page_{self._tests}.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(block.text)
        settings = file.with_name("pytest.ini")
        settings.write_text("[pytest]\nfilterwarnings = error\n")
        words = ["-q", "-p", "no:cacheprovider", "-c", str(settings), str(file)]
        assert pytest.main(words) == 0, str(block)

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._end()
        super().close()


_NOT_ENDED = tuple(
    word
    for state in ("queued", "running", "waiting_for_heavy_check", "waiting_for_limit")
    for word in ("--state", state)
)


def _asks_something(block: Block) -> bool:
    """Whether any of its commands is run."""
    return block.language not in ("console", "sh") or any(
        reason_not_to_run(command.text) is None for command in commands_of(block)
    )


def _shell(text: str) -> Ran:
    ended = subprocess.run(
        ["bash", "-c", text],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=CALL_SECONDS,
        check=False,
        text=True,
    )
    return Ran(ended.returncode, ended.stdout, ended.stderr)
