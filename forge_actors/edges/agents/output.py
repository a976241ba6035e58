"""The output of one attempt of an agent, read as it comes.

Whatever a program prints, reading it takes the memory of its longest line, and of that
no more than `MAX_LINE`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from forge_actors.domain.agents import (
    AgentReport,
    SessionKnown,
    TelemetryReader,
    Told,
)

if TYPE_CHECKING:
    from forge_actors.domain.agents import AgentReader, Usage

_log = logging.getLogger(__name__)

#: Bytes of one line; a longer one is left out.
MAX_LINE = 16 * 1024 * 1024
#: Bytes kept of the end of what is no event.
MAX_NOISE = 16 * 1024


class AgentOutput:
    """Takes the stdout of one attempt, in pieces, and gives the report."""

    def __init__(
        self,
        agent: str,
        reader: AgentReader,
        session: str | None,
        *,
        resumed: bool = False,
    ) -> None:
        self._agent = agent
        self._told = Told(agent, resumed=resumed)
        self._reader = reader
        if session is not None:
            self._told.take(SessionKnown(session), 0)
        #: Where in the stream the next byte is.
        self.offset = 0
        #: The beginning of a line whose end has not come.
        self._pieces: list[bytes] = []
        self._held = 0
        #: What goes on is a line whose beginning is gone or which is too long.
        self._skips = False
        self._noise = b""
        self._unread = 0
        self._stopped_at: int | None = None
        self._ended: AgentReport | None = None

    @property
    def succeeded(self) -> bool:
        """It has told a good end."""
        return self._told.succeeded

    @property
    def told_end(self) -> bool:
        """It has told its final event."""
        return self._told.final_at is not None

    @property
    def usage(self) -> Usage | None:
        """What it told so far of what it used."""
        return self._told.usage

    @property
    def said(self) -> str:
        """What it told last of its work."""
        return self._told.said

    @property
    def session(self) -> str | None:
        return self._told.session

    def stopped(self, printed: int) -> None:
        """It was asked to stop when it had printed so much."""
        if self._stopped_at is None:
            self._stopped_at = printed

    def feed(self, data: bytes, missing: int = 0) -> None:
        """The next bytes; `missing` ones before them were not kept."""
        if missing:
            self._forget_line()
            self._unread += missing
            self.offset += missing
            # What comes begins anywhere in a line.
            self._skips = True
        first, end, rest = data.partition(b"\n")
        if not end:
            self._hold(first)
            return
        self._hold(first)
        self._end_line()
        lines = rest.split(b"\n")
        last = lines.pop()
        for line in lines:
            self.offset += len(line) + 1
            if line:
                self._take(line)
        if last:
            self._hold(last)

    def telemetry(self, data: bytes) -> None:
        """All of what it wrote into the file of its telemetry."""
        reader = self._reader
        if not isinstance(reader, TelemetryReader):
            return
        # A line without its end was cut off.
        for line in data.split(b"\n")[:-1]:
            try:
                for event in reader.telemetry(line):
                    self._told.take(event, self.offset)
            except Exception as error:  # noqa: BLE001 - an adapter can be of others
                _log.warning("the adapter of %s failed: %r", self._agent, error)
                return

    def end(self, stderr: str) -> AgentReport:
        """Nothing follows; `stderr` is the end of what it printed there."""
        if self._ended is None:
            # A line without its end is one all the same if it is whole.
            if self._pieces:
                self._take(b"".join(self._pieces))
            self._forget_line()
            noise = self._noise.decode("utf-8", "replace")
            if self._told.final_at is None:
                # Behind all that was printed, also before a stop.
                self._take_end(noise, stderr)
            self._ended = self._told.report(
                noise=noise, unread=self._unread, stopped_at=self._stopped_at
            )
        return self._ended

    def _take_end(self, noise: str, stderr: str) -> None:
        try:
            for event in self._reader.end(noise, stderr):
                self._told.take(event, self.offset + 1)
        except Exception as error:  # noqa: BLE001 - an adapter can be of others
            _log.warning("the adapter of %s failed at the end: %r", self._agent, error)

    def _hold(self, piece: bytes) -> None:
        self.offset += len(piece)
        if self._skips:
            self._unread += len(piece)
        elif self._held + len(piece) > MAX_LINE:
            self._unread += self._held + len(piece)
            self._forget_line()
            self._skips = True
        elif piece:
            self._pieces.append(piece)
            self._held += len(piece)

    def _end_line(self) -> None:
        self.offset += 1
        if self._pieces:
            line = b"".join(self._pieces)
            self._forget_line()
            self._take(line)
        self._skips = False

    def _forget_line(self) -> None:
        self._pieces.clear()
        self._held = 0

    def _take(self, line: bytes) -> None:
        try:
            events = self._reader.line(line)
            if events is not None:
                for event in events:
                    self._told.take(event, self.offset)
                return
        except Exception as error:  # noqa: BLE001 - an adapter can be of others
            _log.warning("the adapter of %s failed at a line: %r", self._agent, error)
        self._noise = (self._noise + line[-MAX_NOISE:] + b"\n")[-MAX_NOISE:]
