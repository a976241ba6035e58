"""Wrappers: the programs that jobs find in place of git and gh.

A folder of them for each set of effects that a job may have; its name says which these
are, so that no variable of a job decides it. They are shell scripts, as they run before
every git of a job.
"""

from __future__ import annotations

import os
from importlib.resources import files
from typing import TYPE_CHECKING

from forge_actors.domain.errors import StoreFailed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What each program is made of.
_PROGRAMS = {
    "git": "git.sh",
    "gh": "gh.sh",
    "git-remote-forge-held-back": "remote.sh",
}
#: The transport that git uses for a remote that a job may not push to.
TRANSPORT = "forge-held-back"
#: The name of the folder for jobs that may do nothing.
NOTHING = "none"
#: Bytes of what the wrappers of one attempt wrote that are read.
MAX_READ = 64 * 1024


class Wrappers:
    """Those of one home; each folder is made when the first job needs it."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._made: dict[str, str] = {}

    def folder(self, allowed: Sequence[str]) -> str:
        """Where those are that let these effects through.

        Raises:
            StoreFailed: they could not be made, or could not be run.
        """
        name = "+".join(sorted(allowed)) or NOTHING
        if name not in self._made:
            try:
                self._made[name] = self._make(os.path.join(self._root, name))
            except OSError as error:
                raise StoreFailed(
                    f"the wrappers of git and gh cannot be made: {error.strerror}"
                ) from None
        return self._made[name]

    def _make(self, folder: str) -> str:
        for each in (self._root, folder):
            os.makedirs(each, mode=0o700, exist_ok=True)
        if os.statvfs(folder).f_flag & os.ST_NOEXEC:
            raise StoreFailed(
                "the wrappers of git and gh cannot be run: the home is on a file system"
                " that is mounted noexec"
            )
        ours = files(__package__)
        common = (ours / "common.sh").read_bytes()
        for name, source in _PROGRAMS.items():
            _write(os.path.join(folder, name), common + (ours / source).read_bytes())
        return folder


def _write(path: str, content: bytes) -> None:
    """Put a program in place, whole; one that runs goes on with what it was."""
    try:
        with open(path, "rb") as file:
            if file.read() == content and os.access(path, os.X_OK):
                return
    except FileNotFoundError:
        pass
    draft = f"{path}.new"
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o700)
    with open(descriptor, "wb") as file:
        file.write(content)
    os.chmod(draft, 0o700)
    os.replace(draft, path)


def environment(
    folder: str, env: Mapping[str, str], path: str, *, may_push: bool
) -> dict[str, str]:
    """What a job has in its environment so that it finds them.

    Git itself calls the last one for every push to a remote whose push URL is not set
    apart, so that an alias, a hook or a full path to git changes nothing.
    """
    # Those of other jobs of this home are none of it: they may have less than it has.
    others = os.path.dirname(folder)
    folders = env.get("PATH", path).split(":")
    found = ":".join(one for one in folders if os.path.dirname(one) != others)
    added = {"PATH": f"{folder}:{found}" if found else folder}
    if may_push:
        return added
    given = env.get("GIT_CONFIG_COUNT", "0")
    number = int(given) if given.isdecimal() else 0
    return added | {
        "GIT_CONFIG_COUNT": str(number + 1),
        f"GIT_CONFIG_KEY_{number}": f"url.{TRANSPORT}::.pushInsteadOf",
        f"GIT_CONFIG_VALUE_{number}": "",
    }


def read_refused(log: str) -> list[tuple[str, str]]:
    """The effects and the commands that the wrappers of an attempt have refused."""
    try:
        with open(f"{log}.effects", "rb") as file:
            text = file.read(MAX_READ).decode("utf-8", "replace")
    except OSError:
        return []
    pairs = (line.partition("\t")[::2] for line in text.splitlines())
    return [(effect, command) for effect, command in pairs if command]
