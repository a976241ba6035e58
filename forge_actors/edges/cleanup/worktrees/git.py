"""The git program, called so that nothing of a user runs and nothing is locked.

No hook, filter, pager or signature is started, nothing is fetched, and nothing is ever
collected from an object store.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: Seconds one command may take before it counts as hung.
GIT_SECONDS = 120.0
#: Who makes a checkpoint where the user has not told git a name.
IDENTITY = ("Forge Actors", "forge-actors@localhost")

#: Each of these would let something else run, or leave out what has changed.
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "core.untrackedCache": "false",
    "core.checkStat": "default",
    "core.ignoreStat": "false",
    # Objects of their own files are synced together, when all are written.
    "core.fsync": "all,-loose-object",
    "core.fsyncMethod": "fsync",
    "index.sparse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "protocol.allow": "never",
    "submodule.recurse": "false",
    "diff.external": "",
    "log.showSignature": "false",
}
_FILTER_KEYS = ("clean", "smudge", "process")


class GitFailed(Exception):
    """A git command did not do what it should; its own words."""


class Git:
    """Calls git on one repository, or on one worktree of it."""

    def __init__(
        self,
        git_dir: str,
        work_tree: str | None = None,
        *,
        lends: tuple[int, ...] = (),
        filtering: bool = False,
    ) -> None:
        """Only `filtering` the filters of the user run, which make files of what is
        stored. Each git is lent some descriptors, for paths by `lent`.

        Raises:
            GitFailed: the settings of the repository cannot be read.
        """
        self.git_dir = git_dir
        self.work_tree = work_tree
        self._lends = lends
        #: The names of the filters that are set up, which store files otherwise.
        self.filters: frozenset[str] = frozenset()
        # Without a tree there are no files that could go through any.
        if work_tree is not None and not filtering:
            self.filters = self._filter_names()

    def run(
        self,
        *arguments: str,
        text: bytes = b"",
        source: int | None = None,
        sink: int | None = None,
        environment: Mapping[str, str] | None = None,
        allowed: Iterable[int] = (0,),
    ) -> bytes:
        """What git prints when it gets some text, or what is in an open file; nothing
        if it prints into an open file.

        Raises:
            GitFailed: it ended with a status that is not allowed, or took too long.
        """
        status, output, words = self.finish(
            *arguments, text=text, source=source, sink=sink, environment=environment
        )
        if status not in allowed:
            raise GitFailed(f"git {arguments[0]}: {_last_line(words)}")
        return output

    def finish(
        self,
        *arguments: str,
        text: bytes = b"",
        source: int | None = None,
        sink: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> tuple[int, bytes, bytes]:
        """How it ended, what it printed, what it complained of."""
        child = self.start(
            *arguments, source=source, sink=sink, environment=environment
        )
        try:
            given = text if source is None else None
            output, words = child.communicate(given, GIT_SECONDS)
        except subprocess.TimeoutExpired:
            raise GitFailed(
                f"git {arguments[0]} took longer than {GIT_SECONDS:.0f} s"
            ) from None
        finally:
            end(child)
        return child.returncode, output or b"", words

    def start(
        self,
        *arguments: str,
        source: int | None = None,
        sink: int | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """A git that is spoken to; to be given to `end`."""
        program = shutil.which("git")
        if program is None:
            raise GitFailed("git is not installed, or not on the PATH")
        place = [f"--git-dir={self.git_dir}"]
        if self.work_tree is not None:
            place.append(f"--work-tree={self.work_tree}")
        else:
            place.append("--bare")
        config = {**_CONFIG, **self._without_filters()}
        try:
            return subprocess.Popen(
                [program, *place, *arguments],
                stdin=subprocess.PIPE if source is None else source,
                stdout=subprocess.PIPE if sink is None else sink,
                stderr=subprocess.PIPE,
                cwd=self.work_tree or "/",
                pass_fds=self._lends,
                env={**_environment(config), **(environment or {})},
            )
        except OSError as error:
            raise GitFailed(f"git cannot be started: {error.strerror}") from None

    def _filter_names(self) -> frozenset[str]:
        found = self.run(
            *("config", "--null", "--name-only"),
            *("--get-regexp", r"^filter\..*\.(clean|smudge|process|required)$"),
            allowed=(0, 1),
        )
        keys = [os.fsdecode(key) for key in found.split(b"\0") if key]
        return frozenset(key.removeprefix("filter.").rpartition(".")[0] for key in keys)

    def _without_filters(self) -> dict[str, str]:
        """Settings that let every filter do nothing."""
        config: dict[str, str] = {}
        for name in self.filters:
            config |= {f"filter.{name}.{key}": "" for key in _FILTER_KEYS}
            config[f"filter.{name}.required"] = "false"
        return config

    def identity(self) -> dict[str, str]:
        """Who commits: the user, as far as git was told who that is."""
        told = self.run(
            *("config", "--null", "--get-regexp", r"^user\.(name|email)$"),
            allowed=(0, 1),
        )
        lines = os.fsdecode(told).split("\0")
        known = dict(line.split("\n", 1) for line in lines if "\n" in line)
        names = (known.get("user.name", ""), known.get("user.email", ""))
        name, email = names if all(names) else IDENTITY
        return {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": email,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": email,
        }

    def commit_of(self, revision: str) -> str | None:
        """The commit that a revision means; None if there is none."""
        status, output, _ = self.finish(
            *("rev-parse", "--verify", "--quiet", "--end-of-options"),
            f"{revision}^{{commit}}",
        )
        return output.decode().strip() if status == 0 else None

    def tree_of(self, commit: str) -> str:
        return self.run("rev-parse", "--verify", f"{commit}^{{tree}}").decode().strip()


def lent(fd: int, name: str = "") -> str:
    """The path by which git finds what it was lent, or something in a folder that it
    was lent, whatever the path of that means by now."""
    return f"/proc/self/fd/{fd}/{name}" if name else f"/proc/self/fd/{fd}"


def end(child: subprocess.Popen[bytes]) -> None:
    """See that a git is gone. It stays in our group, so that it is whenever we are."""
    if child.poll() is None:
        child.kill()
    for pipe in (child.stdin, child.stdout, child.stderr):
        if pipe is not None:
            with suppress(OSError):
                pipe.close()
    child.wait()


def _environment(config: Mapping[str, str]) -> dict[str, str]:
    """Our environment without what makes git look elsewhere or ask questions."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_")
        or name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
    }
    kept |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": str(len(config)),
    }
    for number, (key, value) in enumerate(config.items()):
        kept[f"GIT_CONFIG_KEY_{number}"] = key
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return kept


def _last_line(words: bytes) -> str:
    lines = words.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "git gave no reason"
