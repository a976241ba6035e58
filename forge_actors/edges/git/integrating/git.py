"""Calling git, for a program without dependencies."""

from __future__ import annotations

import os
import subprocess

#: Seconds one command may take before it counts as hung.
SECONDS = 600.0
#: Nothing of the repository but its filters and drivers of merges runs.
_CONFIG = {
    "core.hooksPath": "/dev/null",
    "core.fsmonitor": "false",
    "submodule.recurse": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "commit.gpgSign": "false",
    "merge.verifySignatures": "false",
    "advice.detachedHead": "false",
}
#: What a user sets for all of git, and no repository or hook for itself.
_KEPT = ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_IDENTITY = ("Forge Actors", "forge-actors@localhost")


class Refusal(Exception):
    """It cannot be done, and nothing was changed; one sentence why."""


class Git:
    """Git in one folder."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def finish(
        self,
        *words: str,
        text: bytes = b"",
        environment: dict[str, str] | None = None,
        raw: bool = False,
    ) -> tuple[int, bytes, str]:
        """How it ended, what it printed, and the last line of what it complained of."""
        try:
            done = subprocess.run(
                ["git", *words],
                input=text,
                capture_output=True,
                cwd=self.folder,
                env={**_environment(), **(environment or {})},
                timeout=SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise Refusal("git is not installed, or not on the PATH") from None
        except subprocess.TimeoutExpired:
            raise Refusal(f"git {words[0]} took longer than {SECONDS:.0f} s") from None
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        out = done.stdout if raw else done.stdout.removesuffix(b"\n")
        return done.returncode, out, " ".join(lines[-5:])[-1000:]

    def run(
        self,
        *words: str,
        text: bytes = b"",
        environment: dict[str, str] | None = None,
    ) -> str:
        """What it printed.

        Raises:
            Refusal: it failed, in its own words.
        """
        status, out, complaint = self.finish(*words, text=text, environment=environment)
        if status != 0:
            raise Refusal(f"git {words[0]}: {complaint or f'it ended with {status}'}")
        return os.fsdecode(out)

    def holds(self, *words: str) -> bool:
        """Whether it says so by its status."""
        return self.finish(*words)[0] == 0

    def commit_of(self, name: str) -> str | None:
        status, out, _ = self.finish(
            "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"
        )
        return out.decode() if status == 0 else None

    def identity(self) -> dict[str, str]:
        """Who commits: the user, as far as git was told who that is."""
        _, out, _ = self.finish(
            "config", "--null", "--get-regexp", r"^user\.(name|email)$"
        )
        lines = os.fsdecode(out).split("\0")
        known = dict(line.split("\n", 1) for line in lines if "\n" in line)
        names = (known.get("user.name", ""), known.get("user.email", ""))
        name, email = names if all(names) else _IDENTITY
        return {
            "GIT_AUTHOR_NAME": name,
            "GIT_AUTHOR_EMAIL": email,
            "GIT_COMMITTER_NAME": name,
            "GIT_COMMITTER_EMAIL": email,
        }


def _environment() -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("GIT_") or name in _KEPT
    }
    kept |= {
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "LC_ALL": "C",
        "GIT_CONFIG_COUNT": str(len(_CONFIG)),
    }
    for number, (key, value) in enumerate(_CONFIG.items()):
        kept[f"GIT_CONFIG_KEY_{number}"] = key
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return kept
