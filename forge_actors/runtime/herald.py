"""The herald of a service: tells its readiness to those who do not ask the service.

These are whoever reads the status file, the service manager, and the one who started
it. Each of them hears of every change, and none of them can fail the service.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextlib import suppress
from time import time
from typing import TYPE_CHECKING

from msgspec import to_builtins

from forge_actors import __version__
from forge_actors.domain.errors import StoreFailed
from forge_actors.domain.timestamps import timestamp
from forge_actors.runtime.installation import known_installation
from forge_actors.runtime.readiness import FAILED, message_of
from forge_actors.runtime.status_file import StatusFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from forge_actors.domain.readiness import Failure
    from forge_actors.domain.releases import Release
    from forge_actors.edges.services.notify import Notifier
    from forge_actors.runtime.ownership import Incarnation
    from forge_actors.runtime.readiness import Board

log = logging.getLogger(__name__)

#: How a line begins that tells the one who started us of a stage.
STAGE_LINE = "stage "


class Herald:
    """That of one service. `ready_fd` is as `service.serve` has it."""

    def __init__(
        self,
        home: Path,
        board: Board,
        notifier: Notifier,
        ready_fd: int | None,
        *,
        stages: bool,
    ) -> None:
        self._home = home
        self._board = board
        self._notifier = notifier
        self._ready_fd = ready_fd
        #: Whether the one who started us hears of stages too.
        self._stages = stages
        self._started_at = timestamp(time())
        self._me: Incarnation | None = None
        self._identity: dict[str, object] = {}
        self._file: StatusFile | None = None
        self._was_ready = False
        #: Where clients find it, by how they connect.
        self.endpoints: dict[str, str] = {}
        #: What tells one set of tools for agents from another; None: there are none.
        self.tools: str | None = None
        board.tell(self.publish)
        board.tell_failures(self._say_failed)

    def owned(self, me: Incarnation, release: Release) -> None:
        """The home is ours, and with it the status file."""
        self._me = me
        self._identity = {
            "installation": known_installation(self._home),
            "instance": me.instance,
            "pid": os.getpid(),
            "version": __version__,
            "release": release.id,
            "artifact": release.digest,
        }
        self._file = StatusFile(self._home, me.instance)

    def tell_endpoint(self, way: str, endpoint: str | None) -> None:
        """Clients find it there from now on, or not any more."""
        if endpoint is not None:
            self.endpoints[way] = endpoint
        else:
            self.endpoints.pop(way, None)
        self.publish()

    def publish(self) -> None:
        """Tell how it is now."""
        now = self._board.now
        complaints = "; ".join(self._board.complaints.values())
        if self._file is not None:
            self._file.write(self.snapshot())
        if now.ending is not None:
            self._notifier.stopping(now.doing)
        elif now.ready and not self._was_ready:
            self._was_ready = True
            self._say_ready()
            self._notifier.ready(now.doing)
        elif self._was_ready:
            self._notifier.status(complaints or now.doing)
        else:
            self._notifier.starting(complaints or now.doing)
            if self._stages:
                self.tell_starter(f"{STAGE_LINE}{now.stage}: {now.doing}")

    def publish_blocked(self, words: str) -> None:
        """Tell of a loop that does not turn, in the name of those who wait for it."""
        if self._file is None:
            return
        now = {**self.snapshot(), "execution_ready": False}
        readiness = now["readiness"]
        assert isinstance(readiness, dict), "that of a snapshot"
        self._file.write(
            {
                **now,
                "readiness": {**readiness, "ready": False},
                "degraded": [*self._board.complaints.values(), words],
            }
        )

    def snapshot(self) -> dict[str, object]:
        """What the status file says."""
        board, now = self._board, self._board.now
        failure = board.failure
        return {
            "format": 1,
            **self._identity,
            "tools": self.tools,
            "endpoints": dict(self.endpoints),
            "stage": now.stage if now.ending is None else "stopping",
            "doing": now.doing,
            "readiness": {
                "ready": now.ready,
                "diagnostics": now.diagnostics,
                "reasons": now.reasons,
            },
            **to_builtins(board.answers),
            "degraded": list(board.complaints.values()),
            "failure": None if failure is None else _failure(failure),
            "started_at": self._started_at,
            "updated_at": timestamp(time()),
        }

    def start_status(self) -> dict[str, object]:
        """What `status` answers before there is a runtime to ask."""
        now = self._board.now
        identity = self._identity
        return {
            "service": {
                "pid": os.getpid(),
                "agent_pid": None,
                "version": __version__,
                "started_at": self._started_at,
                "home": str(self._home),
                "instance": identity.get("instance"),
            },
            "ready": False,
            "stage": now.stage,
            "readiness": now.diagnostics,
            "reasons": now.reasons,
            **to_builtins(self._board.answers),
            "degraded": [f"it starts: {now.doing}"],
            "capacity": {},
            "providers": {},
            "counts": {},
            "pressure": {},
        }

    def tell_starter(self, line: str) -> None:
        """Tell the one who started us, who waits for an empty line."""
        if self._ready_fd is not None:
            with suppress(OSError):  # it waits no more
                os.write(self._ready_fd, f"{line}\n".encode())

    def failed(self, error: BaseException) -> None:
        """The last word of a service that ended because of this."""
        if self._board.failure is None:
            self._board.fail_start(error)
        failure = self._board.failure
        assert failure is not None, "there is one now"
        code = failure.code
        if code == FAILED and isinstance(error, StoreFailed):
            code = "DATABASE_UNAVAILABLE"
        self.ended(getattr(error, "exit_code", 1), code, message_of(error))

    def ended(self, status: int, reason: str, message: str) -> None:
        """The last word: nothing of the service is left."""
        now = self._board.now
        if self._file is None:
            return  # another one's home
        self._file.write_exit(
            {
                **self._identity,
                "status": status,
                "reason": reason,
                "message": message,
                "stage": now.stage,
                "started_at": self._started_at,
                "ended_at": timestamp(time()),
            }
        )
        self._file.remove()

    def _say_ready(self) -> None:
        _say({"event": "ready", "pid": os.getpid(), "home": str(self._home)})
        self.tell_starter("")
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None

    def _say_failed(self, failure: Failure) -> None:
        self._notifier.status(f"{failure.code}: {failure.message}")
        # Of a start that fails the one who started it hears in words, and only once.
        if failure.stage == "ready":
            line = {"event": "failed", "instance": self._identity["instance"]}
            _say({**line, **_failure(failure), "at": timestamp(time())})


def _failure(failure: Failure) -> dict[str, str]:
    return {
        "stage": failure.stage,
        "reason": failure.code,
        "message": failure.message,
    }


def _say(line: Mapping[str, object]) -> None:
    """One line of JSON in the log of the service."""
    with suppress(OSError):  # a log on a full disk
        print(json.dumps({**line, "version": __version__}), file=sys.stderr, flush=True)
