"""The conversation of the clean-up program with the owner of the store."""

from __future__ import annotations

import os
import queue
import threading
from typing import TYPE_CHECKING, Protocol

import msgspec

from forge_actors.domain.errors import ForgeError
from forge_actors.edges.cleanup import wire

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import BinaryIO

    from forge_actors.domain.maintenance import CleanOrder


class RunOver(BaseException):
    """Nothing more is to be done in this run; not an error of the class visited."""


class NotDone(ForgeError):
    """The owner of the store did not do what it was asked for."""

    code = "NOT_DONE"


class Talk(Protocol):
    def ask(self, question: wire.Question) -> wire.Answer:
        """Have the owner do something.

        Raises:
            NotDone: it says why not.
            RunOver: it is gone, or cannot be understood.
        """

    def tell(self, told: wire.Told | wire.Done) -> None:
        """Say something that is not answered."""


class OwnerTalk:
    """The owner at the other end of two pipes.

    A thread reads, so that the end of the owner is noticed whatever the program does:
    `gone` is called then, and is to end the program with all that it has started.
    """

    def __init__(
        self, heard: BinaryIO, say: BinaryIO, gone: Callable[[], object]
    ) -> None:
        self._heard = heard
        self._say = say
        self._gone = gone
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while line := self._heard.readline(wire.MAX_LINE):
            self._lines.put(line)
        self._gone()

    def order(self) -> CleanOrder:
        """What is to be done.

        Raises:
            RunOver: nothing that can be understood was said.
        """
        try:
            return wire.decode_order(self._lines.get())
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
            raise RunOver(f"the order is not understood: {error}") from None

    def ask(self, question: wire.Question) -> wire.Answer:
        """See `Talk`."""
        self._send(question)
        try:
            heard = wire.decode_heard(self._lines.get())
        except (msgspec.DecodeError, RecursionError) as error:
            raise RunOver(f"an answer is not understood: {error}") from None
        if isinstance(heard, wire.Declined):
            raise NotDone(heard.error)
        return heard

    def tell(self, told: wire.Told | wire.Done) -> None:
        """See `Talk`."""
        self._send(told)

    def _send(self, said: wire.Said) -> None:
        try:
            self._say.write(wire.encode(said) + b"\n")
            self._say.flush()
        except OSError as error:
            reason = os.strerror(error.errno or 0)
            raise RunOver(f"nobody listens any more: {reason}") from None
