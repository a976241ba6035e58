"""An order from the service, checked.

Texts that are bytes to the system (arguments, environment, paths) travel as latin-1,
one character a byte, so that every byte passes through JSON.
"""

from __future__ import annotations

import os
import resource
import signal
from typing import TYPE_CHECKING, Any

from forge_actors.edges.node.agent import outputs
from forge_actors.edges.node.agent.child import SpawnFailed
from forge_actors.edges.node.agent.masking import masked_values
from forge_actors.edges.node.agent.worktree import Worktree

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.cgroup import Cgroup


_SIGNALS = {each.name: int(each) for each in signal.Signals}


class Malformed(ValueError):
    """A message that no service of this version sends."""


class Order:
    """See `domain.launch.LaunchOrder`; here as the agent needs it."""

    #: What of that which follows a job it is itself.
    step: str | None = None
    #: Its folder, held open for what follows it, wherever that is moved.
    folder: int | None = None
    #: Made when it is started, if it needs one and there can be one.
    cgroup: Cgroup | None = None

    # Any: the one place where decoded JSON becomes typed values.
    def __init__(self, message: dict[str, Any], base: dict[bytes, bytes]) -> None:
        """Take the order out of a message; `base` is what every job has in its env.

        Raises:
            Malformed: a field is missing or not what it should be.
            SpawnFailed: what was to come with it has not.
        """
        try:
            self.key: tuple[str, int] = (message["job"], message["attempt"])
            argv: list[str] = message["argv"]
            self.argv = [text.encode("latin-1") for text in argv]
            self.cwd = _bytes(message["cwd"])
            self.env = {**base, **environment(message["env"])}
            self.masked = self._add_secrets(message.get("secrets"))
            stdin: str | None = message["stdin"]
            self.stdin = None if stdin is None else _bytes(stdin)
            self.log = _bytes(message["log"])
            self.output_limit = int(message["output_limit"])
            self.outputs: bytes | None = None
            if message.get("outputs"):
                self._give_outputs()
            #: It runs until it ends by itself: it is asked to, and never made to.
            self.lasting = bool(message.get("lasting"))
            self.wall: float | None = None if self.lasting else message["wall"]
            self.idle: float | None = None if self.lasting else message["idle"]
            self.stop_signal = _SIGNALS[message["stop_signal"]]
            self.grace = float(message["grace"])
            self.keep_leftovers = bool(message["keep_leftovers"])
            # Not sent when they have their default.
            self.pty = bool(message.get("pty"))
            self.limits: dict[str, int] | None = message.get("limits")
            after: str | None = message.get("after_job")
            self.after_job = None if after is None else _bytes(after)
            self.artifacts: dict[str, Any] | None = message.get("artifacts")
            #: What follows it, in this order.
            self.steps: tuple[str, ...] = ()
            if self.artifacts is not None:
                self.steps = ("artifacts",)
            if after is not None:
                self.steps += ("after_job",)
            place: dict[str, Any] | None = message.get("worktree")
            self.worktree = None if place is None else Worktree(place)
            if self.worktree is not None:
                self.argv = self.worktree.command(self.argv)
        except Malformed:
            raise
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise Malformed(f"malformed order: {error!r}") from None
        if not argv:
            raise Malformed("malformed order: the command is empty")
        #: Ours until it is started.
        self.descriptors: list[int] = message.get("descriptors", [])
        if "descriptors" in message and not self.descriptors:
            raise SpawnFailed("its descriptors were lost: too many files are open")

    def let_go(self) -> None:
        """Hold its folder no more."""
        if self.folder is not None:
            os.close(self.folder)
            self.folder = None

    def _give_outputs(self) -> None:
        """Tell the job of a file for its outputs, which is made when it starts."""
        self.outputs = os.path.abspath(self.log) + outputs.SUFFIX
        self.env[outputs.VARIABLE] = self.outputs

    def _add_secrets(self, texts: dict[str, str] | None) -> tuple[bytes, ...]:
        """Put the secrets into the environment; what to mask of them in the output."""
        if not texts:
            return ()
        try:
            secrets = environment(texts)
        except ValueError:  # it would repeat the value
            raise Malformed("malformed order: a secret is no bytes") from None
        self.env |= secrets
        return masked_values(secrets.values())


def environment(texts: dict[str, str]) -> dict[bytes, bytes]:
    """An environment as the system has it."""
    # Called for every job: no call for each name.
    return {
        name.encode("latin-1"): value.encode("latin-1") for name, value in texts.items()
    }


def allow_files(limit: object) -> None:
    """Let this process, and the jobs after it, have so many files open at once."""
    if type(limit) is int and limit > 0:
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        if most != resource.RLIM_INFINITY:
            limit = min(limit, most)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, most))


def _bytes(text: str) -> bytes:
    return text.encode("latin-1")
