"""Git where the folder, the user or the network is not as one would wish."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from forge_actors.domain.errors import InvalidInput
from forge_actors.edges.git.checkout import GitProgram, clean_environment
from tests.edges.node_jobs import ROOT
from tests.namespaces import UNSHARE, needs_namespace
from tests.runtime.kit import make_repository
from tests.small_disk import needs_root

if TYPE_CHECKING:
    from collections.abc import Iterator

NOBODY = 65534

#: Prints what became of adding a folder and finding others, as JSON.
ADD = f"""
import json, sys, trio
sys.path.insert(0, {str(ROOT)!r})
from forge_actors.domain.errors import ForgeError
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.store import open_store
from forge_actors.runtime.ids import IdSource
from forge_actors.runtime.registry import Registry
from forge_actors.testing.clock import FakeClock
from pathlib import Path

async def main(home, folder, *others):
    store = open_store(Path(home) / "s", repository_workers=4, overtake_after=1800.0)
    async with store as opened:
        registry = Registry(opened, GitProgram(), FakeClock(), IdSource())
        told = []
        try:
            told.append((await registry.add(folder, None))[0].path)
            for other in others:
                repo, checkout = await registry.find(other)
                told.append([repo.path, checkout.root])
                told.append((await registry.add(other, None))[1])
        except ForgeError as error:
            told.append(str(error))
        return told
"""


def outcome(script: str, *arguments: str | Path, before: tuple[str, ...] = ()) -> Any:
    command = [*before, sys.executable, "-c", ADD + script, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: Everything is loaded while we may read it, then we are somebody else.
AS_NOBODY = f"""
import os
os.chdir("/")
trio.run(main, *sys.argv[2:4])
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
print(json.dumps(trio.run(main, sys.argv[1], *sys.argv[4:])))
"""


@pytest.fixture
def public(tmp_path: Path) -> Iterator[Path]:
    """A folder that everybody may enter, below others that they may not."""
    made = Path("/tmp") / f"public-{os.getpid()}-{tmp_path.name}"
    made.mkdir()
    made.chmod(0o777)
    yield made
    subprocess.run(["rm", "-rf", str(made)], check=True)


def as_nobody(public: Path, tmp_path: Path, folder: Path) -> Any:
    (public / "home").mkdir()
    os.chown(public / "home", NOBODY, NOBODY)
    warm = make_repository(tmp_path / "warm")
    return outcome(AS_NOBODY, public / "home", tmp_path, warm, folder)


@needs_root
def test_nobody_is_told_how_to_trust_a_repository_of_root(
    public: Path, tmp_path: Path
) -> None:
    folder = make_repository(public / "app")
    [told] = as_nobody(public, tmp_path, folder)
    assert f"run: git config --global --add safe.directory {folder}" in told


@needs_root
def test_nobody_is_told_where_an_id_cannot_be_written(
    public: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_repository(public / "app")
    config = public / "config"
    config.write_text("[safe]\n\tdirectory = *\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    [told] = as_nobody(public, tmp_path, folder)
    assert f"{folder}/.git/forge-actors/id cannot be written: Permission denied" in told
    assert "let this user write there, or clone the repository" in told


@needs_root
def test_nobody_works_in_a_repository_of_nobody(public: Path, tmp_path: Path) -> None:
    folder = make_repository(public / "app")
    for path in (folder, *folder.rglob("*")):
        os.chown(path, NOBODY, NOBODY)
    assert as_nobody(public, tmp_path, folder) == [str(folder)]


PRINT = "print(json.dumps(trio.run(main, *sys.argv[1:])))"


@needs_namespace
def test_a_bind_mount_is_another_spelling(tmp_path: Path) -> None:
    """Of the repository, of the work tree that is meant, and of a linked one."""
    app = make_repository(tmp_path / "app")
    git = ["git", "-C", str(app)]
    subprocess.run([*git, "worktree", "add", "-q", str(tmp_path / "tree")], check=True)
    (app / "sub").mkdir()
    mounts = {"app": "one", "app/sub": "two", "tree": "three", ".": "four"}
    script = "import subprocess\n"
    for source, place in mounts.items():
        (tmp_path / "m" / place).mkdir(parents=True)
        words = ["mount", "--bind", str(tmp_path / source), str(tmp_path / "m" / place)]
        script += f"subprocess.run({words!r}, check=True)\n"
    others = [tmp_path / "m" / "one", tmp_path / "m" / "one" / "sub"]
    others += [tmp_path / "m" / "four" / "app", tmp_path / "m" / "three"]
    told = outcome(script + PRINT, tmp_path, app, *others, before=tuple(UNSHARE))
    same, known = [str(app), str(app)], "already registered as 'app'"
    linked = [str(app), str(tmp_path / "tree")]
    assert told == [str(app), *[same, known] * 3, linked, known]


@needs_namespace
def test_a_folder_of_a_repository_that_is_mounted_alone_is_none(tmp_path: Path) -> None:
    app, place = make_repository(tmp_path / "app"), tmp_path / "m"
    (app / "sub").mkdir()
    place.mkdir()
    words = ["mount", "--bind", str(app / "sub"), str(place)]
    script = f"import subprocess\nsubprocess.run({words!r}, check=True)\n"
    told = outcome(script + PRINT, tmp_path, place, before=tuple(UNSHARE))
    assert "no git work tree" in told[0]


@needs_namespace
def test_a_repository_that_cannot_be_written_to_is_refused(tmp_path: Path) -> None:
    app, place = make_repository(tmp_path / "app"), tmp_path / "m"
    place.mkdir()
    words = [["mount", "--bind", str(app), str(place)]]
    words += [["mount", "-o", "remount,bind,ro", str(place)]]
    script = f"import subprocess\n[subprocess.run(w, check=True) for w in {words!r}]\n"
    [told] = outcome(script + PRINT, tmp_path, place, before=tuple(UNSHARE))
    assert f"{place}/.git/forge-actors/id cannot be written: Read-only" in told
    assert "clone the repository to where it may, and add the clone" in told


@contextmanager
def closed_server() -> Iterator[tuple[str, list[str]]]:
    """A server that lets nobody in without a name and a password."""
    asked: list[str] = []

    class Closed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="closed"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Closed)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/app.git", asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


async def test_a_server_that_wants_a_password_gets_no_answer_and_no_question(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where a program that asks is configured, in one way or another."""
    asks, config = tmp_path / "asks", tmp_path / "config"
    asks.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\nsleep 600\n")
    asks.chmod(0o700)
    config.write_text(f"[core]\n\taskPass = {asks}\n")
    for name in ("GIT_ASKPASS", "SSH_ASKPASS"):
        monkeypatch.setenv(name, str(asks))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "1")
    monkeypatch.setenv("DISPLAY", ":0")
    refused = pytest.raises(InvalidInput, match="terminal prompts disabled")
    with closed_server() as (address, requests), trio.fail_after(30), refused:
        await GitProgram().clone(address, tmp_path / "clone")
    assert requests
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize("own", [None, "variable", "config"])
async def test_ssh_asks_nobody_unless_the_user_says_how_it_is_started(
    own: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no terminal either."""
    for name in ("ssh", "mine"):
        program = tmp_path / name
        program.write_text(
            f'#!/bin/sh\necho "{name} $*" >> {tmp_path}/called\n'
            f"(: < /dev/tty) 2>/dev/null && echo terminal >> {tmp_path}/called\n"
            "exit 1\n"
        )
        program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    config = tmp_path / "config"
    config.write_text(
        f"[core]\n\tsshCommand = {tmp_path}/mine\n" if own == "config" else ""
    )
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    if own == "variable":
        monkeypatch.setenv("GIT_SSH_COMMAND", str(tmp_path / "mine"))
    with pytest.raises(InvalidInput, match=r"ssh://nowhere\.invalid/app"):
        await GitProgram().clone("ssh://nowhere.invalid/app", tmp_path / "clone")
    called = (tmp_path / "called").read_text()
    assert called.startswith("ssh -oBatchMode=yes " if own is None else "mine ")
    assert "terminal" not in called


async def test_a_clone_that_is_given_up_leaves_no_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also none that git has started."""
    os.mkfifo(tmp_path / "began")
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\necho $$ > {tmp_path}/began\nexec sleep 600\n")
    program.chmod(0o700)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(program))
    async with trio.open_nursery() as nursery:
        clone = GitProgram().clone
        nursery.start_soon(clone, "ssh://nowhere.invalid/app", tmp_path / "clone")
        text = await trio.to_thread.run_sync((tmp_path / "began").read_text)
        began = os.pidfd_open(int(text))
        nursery.cancel_scope.cancel()
    try:
        # It is no child of ours: it may take a moment to end of its signal.
        await trio.lowlevel.wait_readable(began)
    finally:
        os.close(began)


HOOK = """
GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE GIT_OBJECT_DIRECTORY GIT_QUARANTINE_PATH
GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_PREFIX GIT_CONFIG GIT_CONFIG_PARAMETERS GIT_EDITOR
GIT_CONFIG_COUNT GIT_NAMESPACE GIT_EXEC_PATH GIT_TEMPLATE_DIR GIT_TRACE GIT_COMMON_DIR
GIT_PUSH_OPTION_COUNT GIT_REFLOG_ACTION GIT_INTERNAL_SUPER_PREFIX GIT_AUTHOR_DATE
"""


def test_what_a_hook_has_in_its_environment_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    mine = {"GIT_CONFIG_GLOBAL": "/c", "GIT_SSH_COMMAND": "ssh -v"}
    hook = dict.fromkeys(HOOK.split(), "/x")
    for name, value in {**mine, **hook}.items():
        monkeypatch.setenv(name, value)
    found = clean_environment()
    assert not found.keys() & hook.keys()
    assert {name: found[name] for name in mine} == mine
    assert found["GIT_TERMINAL_PROMPT"] == "0"
    assert found["GIT_ASKPASS"] == found["SSH_ASKPASS"] == ""
