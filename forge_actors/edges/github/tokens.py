"""Where the token for a server of GitHub comes from. It stays in memory.

A secret that the settings name comes first, then the variables that `gh` goes by too,
then `gh` itself, which may keep it in the keyring.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from forge_actors.domain.errors import ForgeError
from forge_actors.domain.github.places import is_cloud

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

#: Seconds that `gh` may take.
GH_SECONDS = 5.0
#: Seconds until it is looked again where there was none.
LOOK_AGAIN = 60.0
_TOKEN = re.compile(r"[\x21-\x7e]{1,1024}")
_CLOUD = ("GH_TOKEN", "GITHUB_TOKEN")
_ENTERPRISE = ("GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")


class Token(Struct, frozen=True):
    """Its value is in no text that is made of it."""

    value: str
    #: Where it came from.
    origin: str

    def __repr__(self) -> str:
        return f"Token(from {self.origin})"


class Tokens:
    """`secret` gives the value of the secret for a server, if the settings name one.

    The variables for servers of companies say nothing of which server they are for:
    they count for those that are `named`, and for that of `GH_HOST`.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        secret: Callable[[str], tuple[str, bytes] | None] = lambda _: None,
        named: Collection[str] = (),
    ) -> None:
        self._environ = environ
        self._secret = secret
        self._named = {*named, environ.get("GH_HOST", "").lower()}
        self._known: dict[str, Token] = {}
        self._missed: dict[str, float] = {}
        self._looking = trio.Lock()

    async def find(self, host: str) -> Token | None:
        """The token for a server; None: it is asked without one."""
        async with self._looking:
            if host in self._known:
                return self._known[host]
            if trio.current_time() < self._missed.get(host, 0.0):
                return None
            found = (
                self._of_secret(host)
                or self._of_environment(host)
                or await self._of_gh(host)
            )
            if found is None:
                self._missed[host] = trio.current_time() + LOOK_AGAIN
            else:
                self._known[host] = found
            return found

    def forget(self, host: str) -> None:
        """Look anew next time: it was not accepted, or nobody needs it any more."""
        self._known.pop(host, None)

    def forget_all(self) -> None:
        self._known.clear()
        self._missed.clear()

    def _of_secret(self, host: str) -> Token | None:
        try:
            found = self._secret(host)
        except ForgeError:
            return None
        if found is None:
            return None
        name, value = found
        return _token(value.decode("ascii", "replace"), f"the secret {name}")

    def _of_environment(self, host: str) -> Token | None:
        names: tuple[str, ...] = _CLOUD if is_cloud(host) else _ENTERPRISE
        if not is_cloud(host):
            if host not in self._named:
                return None  # whoever names a server is not to be sent a token for it
            if self._environ.get("CODESPACES") == "true":
                names = (*names, "GITHUB_TOKEN")
        for name in names:
            if value := self._environ.get(name):
                return _token(value, f"the variable {name}")
        return None

    async def _of_gh(self, host: str) -> Token | None:
        gh = self._environ.get("GH_PATH") or shutil.which(
            "gh", path=self._environ.get("PATH", os.defpath)
        )
        if gh is None:
            return None
        output: subprocess.CompletedProcess[bytes] | None = None
        with trio.move_on_after(GH_SECONDS), suppress(OSError):
            output = await trio.run_process(
                [gh, "auth", "token", "--hostname", host],
                stdin=subprocess.DEVNULL,
                capture_stdout=True,
                stderr=subprocess.DEVNULL,
                check=False,
                env={**self._environ, "GH_PROMPT_DISABLED": "1"},
                start_new_session=True,
                deliver_cancel=_end,
            )
        if output is None or output.returncode != 0:
            return None
        return _token(output.stdout.decode("ascii", "replace"), "gh auth token")


def _token(text: str, origin: str) -> Token | None:
    """A token, if it is one that can be sent: one word, with a newline at most."""
    text = text.removesuffix("\n").removesuffix("\r")
    return Token(text, origin) if _TOKEN.fullmatch(text) else None


async def _end(process: trio.Process) -> None:
    """End it and all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
