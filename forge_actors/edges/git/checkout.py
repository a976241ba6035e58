"""Which repository a folder belongs to, as git sees it."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.errors import InvalidInput, Unavailable
from forge_actors.domain.repositories import Checkout, Identity
from forge_actors.edges.git import ids, links
from forge_actors.edges.git.ids import ID_FILE, OUR_FOLDER

if TYPE_CHECKING:
    from forge_actors.domain.relocation import Relocation

#: Seconds one git command may take before it counts as hung.
GIT_SECONDS = 30.0
#: Seconds a git program that is asked to end has for that.
END_SECONDS = 2.0

#: What a user sets for all of git, and no repository or hook for itself.
KEPT = (
    "GIT_CONFIG_GLOBAL",
    "GIT_CONFIG_SYSTEM",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
)
#: How ssh is started where the user says nothing of it: it asks nobody.
_SSH = "ssh -oBatchMode=yes"
#: The line in which git says how to trust a folder of another user.
_TRUST = re.compile(r"git config --global --add safe\.directory .+")


def clean_environment() -> dict[str, str]:
    """Our environment without what would make git look elsewhere or ask questions.

    A service started, or a job submitted, from inside a git hook inherits `GIT_DIR` and
    its kin, which would turn every call of ours to another repository. Nobody is there
    to answer a question, at a terminal or in a window; helpers that know the answer are
    asked.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("GIT_", "SSH_ASKPASS"))
    }
    for name in KEPT:
        if name in os.environ:
            kept[name] = os.environ[name]
    # An empty program is none, whatever is configured.
    silent = {"GIT_ASKPASS": "", "SSH_ASKPASS": "", "SSH_ASKPASS_REQUIRE": "never"}
    return {**kept, **silent, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


class GitProgram:
    """The port `Git` on the git program found on the PATH."""

    async def checkout(self, path: str) -> Checkout:
        folder = Path(path).expanduser().absolute()
        if not folder.exists():
            raise InvalidInput("path", f"{path} does not exist")
        if not folder.is_dir():
            raise InvalidInput("path", f"{path} is no folder")
        lines = await self._rev_parse(folder, path)
        if len(lines) > 3:
            raise InvalidInput("path", f"{path!r} has a line break in its name")
        root, common, own = (os.path.realpath(folder / line) for line in lines)
        if common != own:
            root = links.as_linked(root, own)
        elif not os.path.lexists(os.path.join(root, ".git")):
            raise InvalidInput(
                "path",
                f"{path} has its work tree in {root} (core.worktree), where git does"
                f" not find the repository: write `gitdir: {own}` to {root}/.git, and"
                f" add {root}",
            )
        status = os.stat(common)
        return Checkout(root, common, status.st_dev, status.st_ino, common == own)

    def identity(self, common_dir: str) -> Identity | None:
        """See the port. An id file that cannot be read counts as none."""
        return ids.identity(common_dir)

    def add_id(self, common_dir: str, repo_id: str) -> None:
        """See the port."""
        try:
            ids.add_id(common_dir, repo_id)
        except OSError as error:
            raise InvalidInput(
                "path",
                f"{common_dir}/{OUR_FOLDER}/{ID_FILE} cannot be written:"
                f" {error.strerror}; let this user write there, or clone the repository"
                " to where it may, and add the clone",
            ) from None

    def seek(self, common_dir: str, repo_id: str) -> list[tuple[str, Identity]]:
        """See the port."""
        return links.seek(common_dir, repo_id)

    def relink(self, common_dir: str, old: str, moved: Relocation) -> None:
        """See the port."""
        links.relink(common_dir, old, moved)

    async def clone(self, source: str, target: Path) -> None:
        """Clone a repository into a folder that does not exist yet.

        Raises:
            InvalidInput: git could not; its own words are given.
        """
        environment = clean_environment()
        if not await self._has_ssh(environment):
            environment["GIT_SSH_COMMAND"] = _SSH
        done = await self._run(
            *("clone", "--quiet", "--", source, str(target)),
            limit=None,
            environment=environment,
        )
        if done.returncode != 0:
            raise InvalidInput("clone", f"{source}: {_last_line(done.stderr)}")

    async def _has_ssh(self, environment: dict[str, str]) -> bool:
        """Whether the user says how ssh is to be started."""
        if "GIT_SSH" in environment or "GIT_SSH_COMMAND" in environment:
            return True
        done = await self._run("-C", "/", "config", "--get", "core.sshCommand")
        return done.returncode == 0

    async def _rev_parse(self, folder: Path, path: str) -> list[str]:
        done = await self._run(
            *("-C", str(folder), "rev-parse"),
            *("--show-toplevel", "--git-common-dir", "--absolute-git-dir"),
        )
        if done.returncode == 0:
            return os.fsdecode(done.stdout.removesuffix(b"\n")).split("\n")
        words = _last_line(done.stderr)
        if "must be run in a work tree" in words:
            raise InvalidInput(
                "path",
                f"{path} is a bare repository or inside of one: make a work tree of it"
                f" with git -C {path} worktree add FOLDER, and add that",
            )
        trust = _TRUST.search(os.fsdecode(done.stderr))
        if trust is not None:
            raise InvalidInput(
                "path",
                f"{path} belongs to another user; if you trust it, run: {trust[0]}",
            )
        raise InvalidInput("path", f"{path} is no git work tree: {words}")

    async def _run(
        self,
        *arguments: str,
        limit: float | None = GIT_SECONDS,
        environment: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[bytes]:
        program = shutil.which("git")
        if program is None:
            raise Unavailable("git is not installed, or not on the PATH")
        seconds = float("inf") if limit is None else limit
        with trio.move_on_after(seconds):
            return await trio.run_process(
                [program, *arguments],
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=environment or clean_environment(),
                # It has no terminal to ask at, and one signal reaches all it started.
                start_new_session=True,
                deliver_cancel=_end,
            )
        raise Unavailable(f"git {arguments[-1]} took longer than {seconds:.0f} s")


async def _end(process: trio.Process) -> None:
    """End git and what it started, in a shielded scope of its own."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
        with trio.move_on_after(END_SECONDS):
            await process.wait()
        os.killpg(process.pid, signal.SIGKILL)


def _last_line(stderr: bytes) -> str:
    lines = stderr.decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("fatal: ") if lines else "git gave no reason"
