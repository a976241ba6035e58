"""What the agent decides: which attempts begin, what a service is told, when it ends.

Nothing here touches the system. Processes, the socket and the journal are `Hands` and
`Book`, so the same decisions can be driven by a simulation.

An attempt is, in this order: behind others (while too many run), held (the system had
no room for it), running, ended and its receipt outstanding, forgotten. Its `starting`
record is in the book before its process is, and its receipt before anyone is told. So
what neither a living agent nor any book mentions never began, and neither did what was
held last. What is behind others no book mentions: it is dropped when the service is
gone that ordered it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic

from forge_actors.edges.node.agent.behind import Behind
from forge_actors.edges.node.agent.child import NoRoom, SpawnFailed
from forge_actors.edges.node.agent.hands import J
from forge_actors.edges.node.agent.held_starts import HeldStarts
from forge_actors.edges.node.agent.lines import line_of
from forge_actors.edges.node.agent.order import Malformed
from forge_actors.edges.node.agent.records import (
    exited,
    names_quoted,
    output_line,
    record,
    starting,
)

if TYPE_CHECKING:
    from forge_actors.edges.node.agent.hands import Book, Hands
    from forge_actors.edges.node.agent.held_starts import Message
    from forge_actors.edges.node.agent.tree import Mark

#: How many characters of the name of a service or of its release are taken.
_LONGEST_NAME = 200


class Unwelcome(Exception):
    """A service that is not served, or no more; the message says why, in one sentence.

    `code` is `ending`, `epoch`, `secret`, `hello` or `replaced`.
    """

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


class Desk(Generic[J]):
    """The table of attempts, and the service that is served."""

    def __init__(self, hands: Hands[J], book: Book, about: Message) -> None:
        """`about` is what a service learns of the agent, beside what it runs."""
        self._hands = hands
        self._book = book
        self._about = about
        #: Attempts that run; whoever starts the last command of one replaces it here.
        self.jobs: dict[Mark, J] = {}
        #: Receipts that no service has saved yet.
        self._receipts: dict[Mark, bytes] = {}
        self._held = HeldStarts()
        #: Starts for which others have to end first.
        self.behind = Behind()
        #: The fence of what is behind, held or runs, and which service of which release
        #: ordered it.
        self._stamps: dict[Mark, Message] = {}
        #: Of those that run until they end by themselves: the signal that asks them
        #: to, and how many of them there were.
        self._lasting: dict[Mark, tuple[str, int]] = {}
        #: Those that run whose result is in the book already.
        self._came_to: set[Mark] = set()
        self._epoch = -1
        self._instance = self._release = ""
        self._quoted_names = names_quoted("", "")
        self._bound = True
        #: Everything is to end, and nothing starts any more.
        self.ending = False
        #: No service is connected.
        self.alone = False
        #: Nothing keeps the agent once no job runs.
        self.leaving = False

    # The service.

    def greet(self, hello: Message) -> list[bytes]:
        """Serve the service that says hello; what it is told at first.

        Whoever was served before is served no more. What that one said and was not
        heard yet must not be: the new one was told that it did not happen.

        Raises:
            Unwelcome: it is not served, and nothing has changed.
            Malformed: it is no hello.
        """
        epoch, bound = hello.get("epoch"), hello.get("bound")
        instance, release = hello.get("instance"), hello.get("release")
        if not (
            hello.get("op") == "hello"
            and type(epoch) is int
            and type(bound) is bool
            and isinstance(instance, str)
            and isinstance(release, str)
        ):
            raise Malformed("the first line is no hello")
        if self.ending:
            raise Unwelcome("ending", "the node agent ends everything, then itself")
        if epoch < self._epoch:
            raise Unwelcome("epoch", "a runtime that came later owns this home")
        self._drop_behind()
        self._epoch, self._bound = epoch, bound
        self._instance = instance[:_LONGEST_NAME]
        self._release = release[:_LONGEST_NAME]
        self._quoted_names = names_quoted(self._instance, self._release)
        self.alone = self.leaving = False
        ready = {
            "event": "ready",
            **self._about,
            "running": [self._entry(key, job) for key, job in self.jobs.items()],
            "held": [self._entry(key) for key in self._held],
            "outstanding": len(self._receipts),
            "hands_over": True,
            "rooms": True,
        }
        return [line_of(ready), *map(exited, self._receipts.values())]

    def _entry(self, key: Mark, job: J | None = None) -> Message:
        entry = {
            "job": key[0],
            "attempt": key[1],
            "fence": self._stamps[key]["fence"],
            "identity": None if job is None else self._hands.identity(job),
        }
        if key in self._lasting:
            entry["stops"] = self._lasting[key][1]
        return entry

    def service_gone(self) -> None:
        """The connection of the service that was served has ended."""
        self.alone = self.leaving = True
        self._drop_behind()
        if self._bound:
            self.end()
        elif self.jobs:
            with suppress(OSError):  # what is written next is synced as well
                self._book.sync()

    def end(self) -> None:
        """End every job, and then itself."""
        self.ending = self.leaving = True
        for key in (*self._held, *self.behind):
            self._stop_held(key)
        for key, job in list(self.jobs.items()):
            if key in self._lasting:
                self._is_news(key, {})
            self._hands.end(job)

    # What the service says.

    def obey(self, message: Message) -> None:
        """Do what the service that is served says.

        Raises:
            Malformed, KeyError, TypeError, ValueError: nobody can; nothing was done.
        """
        operation = message["op"]
        if operation == "start":
            self._start((message["job"], message["attempt"]), message)
        elif operation == "forget":
            for job_id, number in message["attempts"]:
                self._forget((job_id, number))
        elif operation == "ping":
            self._hands.say(b'{"event":"pong"}')
        elif operation == "quit":
            self.end()
        else:
            self._obey_about((message["job"], message["attempt"]), message)

    def _obey_about(self, key: Mark, message: Message) -> None:
        operation = message["op"]
        job = self.jobs.get(key)
        if operation == "stop":
            if message["ending"] == "withdrawn":
                if key in self.behind.messages:
                    self._stop_held(key, "withdrawn", "it was withdrawn")
            elif job is None:
                self._stop_held(key)
            elif self._is_news(key, message):
                grace = message["grace"]
                grace = None if grace is None else float(grace)
                self._hands.stop(job, grace, message["ending"])
        elif operation in ("pause", "resume"):
            pause = operation == "pause"
            if job is None:
                self._held.suspend(key, pause=pause)
                self.behind.suspend(key, pause=pause)
            else:
                self._hands.suspend(job, pause=pause)
        elif operation == "watch":
            known = int(message["known"])
            if job is None:
                self._hands.say(output_line(key, known))
            else:
                self._hands.watch(job, known)
        else:
            raise Malformed(f"unknown op {operation!r}")

    def _is_news(self, key: Mark, stop: Message) -> bool:
        """Whether a stop is another one: a service repeats what it said last, and one
        that lasts gets a signal for each."""
        if key not in self._lasting:
            return True
        signal, known = self._lasting[key]
        count = int(stop.get("nth", known + 1))
        if count <= known:
            return False
        self._lasting[key] = signal, count
        self._write_started(key, self._hands.identity(self.jobs[key]))
        return True

    def _start(self, key: Mark, message: Message) -> None:
        """Start an attempt, or repeat what became of it: it never runs twice."""
        if key in self.jobs:
            self._hands.repeat_start(self.jobs[key])
            return
        if key in self._receipts:
            self._hands.say(exited(self._receipts[key]))
            return
        if key in self._held.messages or key in self.behind.messages:
            return
        stamp = self._stamps.get(key)
        names = self._quoted_names
        if stamp is None:
            stamp = {
                "fence": message.get("fence", 0),
                "instance": self._instance,
                "release": self._release,
            }
        else:  # it was held, and may be of an earlier service
            names = names_quoted(stamp["instance"], stamp["release"])
        if self.behind.takes(key, message, self._taken) and not self.ending:
            self._stamps[key] = stamp
            return
        try:
            if self.ending:
                raise SpawnFailed("the node agent is stopping")
            lasting = message["stop_signal"] if message.get("lasting") else None
            self._write_start(key, stamp["fence"], names, lasting)
            self.jobs[key] = job = self._hands.begin(key, message)
        except (Malformed, SpawnFailed) as error:
            # What is to be handed to it is not kept here for long.
            holds = isinstance(error, NoRoom) and "descriptors" not in message
            if holds and self.jobs:
                self._held.hold(key, message)
                self._stamps[key] = stamp
                # Should we die now, nobody need wonder whether it began.
                self._write_down(key, line_of(record("held", key, stamp)))
                self.tell_problem(key[0], f"it starts later: {error}")
            else:
                self._stamps.pop(key, None)
                self._never_ran(key, stamp, "spawn", str(error))
            return
        self._stamps[key] = stamp
        if lasting is not None:
            self._lasting[key] = lasting, 0
        if message.get("paused"):
            self._hands.suspend(job, pause=True)

    def _write_start(
        self, key: Mark, fence: int, names: str, lasting: str | None
    ) -> None:
        """Write down that it begins.

        Raises:
            NoRoom: that is not written, so it must not.
        """
        try:
            self._book.append(key, starting(key, fence, names, lasting))
            if self.alone:
                self._book.sync()
        except OSError as error:
            why = f"its start cannot be written down: {error.strerror}"
            raise NoRoom(why) from None

    def _start_held(self) -> None:
        """Try again what the system had no room for: a job has given some back."""
        for key, message in self._held.take().items():
            self._start(key, message)

    @property
    def _taken(self) -> int:
        """How many have a place: they run, or are to before all others."""
        return len(self.jobs) + len(self._held.messages)

    def _start_behind(self) -> None:
        """Start those for which fewer run now than there may."""
        while (first := self.behind.take_first(self._taken)) is not None:
            self._start(*first)

    def _drop_behind(self) -> None:
        """Nobody is to tell of them: that they are not mentioned says all of it."""
        for key in self.behind:
            self.behind.drop(key)
            del self._stamps[key]

    def _stop_held(
        self, key: Mark, ending: str = "stop", why: str = "it was stopped"
    ) -> None:
        if self._held.drop(key) or self.behind.drop(key):
            why = f"{why} before it started"
            self._never_ran(key, self._stamps.pop(key), ending, why)

    def _never_ran(self, key: Mark, stamp: Message, ending: str, error: str) -> None:
        """There never was a process of it."""
        about = {"job": key[0], "attempt": key[1], **stamp}
        at = self._hands.now()
        self._publish(key, {**about, "ending": ending, "ended_at": at, "error": error})

    def _forget(self, key: Mark) -> None:
        if key in self._receipts:
            del self._receipts[key]
            self._book.forget(key)

    # What the jobs do.

    def started(self, key: Mark) -> None:
        """It runs long enough for its start to be told."""
        identity = self._hands.identity(self.jobs[key])
        self._write_started(key, identity)
        about = {"event": "started", "job": key[0], "attempt": key[1]}
        pid, ticks = identity["pid"], identity["start_ticks"]
        started = {**about, "pid": pid, "start_ticks": ticks}
        self._hands.say(line_of(started))

    def _write_started(self, key: Mark, identity: Message) -> None:
        if key in self._came_to:
            return  # its line must stay
        told = record("started", key, self._stamps[key])
        if key in self._lasting:
            told["lasting"], told["stops"] = self._lasting[key]
        self._write_down(key, line_of({**told, "identity": identity}))

    def came_to(self, key: Mark, receipt: Message) -> None:
        """Its result stands, but something of it goes on to run."""
        self._came_to.add(key)
        self._write_down(key, line_of(receipt | self._stamps[key]))

    def ended(self, key: Mark, receipt: Message) -> None:
        """Nothing of it runs any more."""
        del self.jobs[key]
        receipt |= self._stamps.pop(key)
        if self._came_to:
            self._came_to.discard(key)
        if self._lasting:
            self._lasting.pop(key, None)
        self._publish(key, receipt)
        if self._held.messages:
            self._start_held()
        if self.behind.messages:
            self._start_behind()

    def _publish(self, key: Mark, receipt: Message) -> None:
        line = self._receipts[key] = line_of(receipt)
        self._write_down(key, line)
        self._hands.say(exited(line))

    def _write_down(self, key: Mark, line: bytes) -> None:
        try:
            self._book.append(key, line)
            if self.alone:
                self._book.sync()
        except OSError as error:
            # The service is still told, and saves it in its own place.
            problem = f"what became of it is not written down: {error.strerror}"
            self.tell_problem(key[0], problem)

    def tell_problem(self, job: Any, problem: str) -> None:
        """Something could not be done; `job` is what was given as its id."""
        self._hands.say(line_of({"event": "error", "job": job, "problem": problem}))
