"""The dashboard as a textual program: what is on the screen, and what its keys do."""

from __future__ import annotations

import asyncio
import signal
import sys
from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding
from textual.widgets import Input, Static

from forge_actors.cli.dashboard import words
from forge_actors.cli.dashboard.board import Board, shown_title
from forge_actors.cli.dashboard.dialogs import Confirm, Help
from forge_actors.cli.dashboard.feed import Feed
from forge_actors.cli.dashboard.job_list import JobList
from forge_actors.cli.dashboard.log_screen import LogScreen
from forge_actors.cli.text import DEFAULT_WIDTH, clean, fit
from forge_actors.domain.errors import ForgeError
from forge_actors.domain.jobs import RESERVED, TERMINAL

if TYPE_CHECKING:
    from collections.abc import Collection

    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Resize

    from forge_actors.domain.jobs import JobView

KEYS = "?:help enter:log /:filter c:cancel r:retry a:approve d:deny p:pause q:quit"
#: Lines of the screen below which the part about one job is not shown.
LEAST_HEIGHT = 16
#: The exit status of a program that one of these ended.
ENDED_BY = {
    number: 128 + number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
}
#: Actions that are about the list, and about the job that is chosen in it.
OF_LIST = frozenset({"act", "pause", "pause_all", "filter", "show_all", "log", "help"})
QUESTION_COLUMNS = 70
#: What is asked before something is done that cannot be undone.
QUESTIONS = {
    "cancel": "Cancel this job?",
    "deny": "Deny what this job asks? It fails then.",
}


class Dashboard(App[int]):
    """The jobs of one service, live. Its result is the exit status."""

    TITLE = "forge-actors"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    #head { height: 3; }
    #detail { height: 6; border-top: solid ansi_default; }
    #keys { height: 1; }
    #filter { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave(0)", show=False),
        Binding("ctrl+c", "leave(130)", show=False, priority=True),
        Binding("ctrl+z", "suspend_process", show=False, priority=True),
        Binding("question_mark", "help", show=False),
        Binding("slash", "filter", show=False),
        Binding("escape", "show_all", show=False),
        Binding("enter", "log", show=False),
        Binding("c", "act('cancel')", show=False),
        Binding("r", "act('retry')", show=False),
        Binding("a", "act('approve')", show=False),
        Binding("d", "act('deny')", show=False),
        Binding("p", "pause", show=False),
        Binding("P", "pause_all", show=False),
    ]

    def __init__(self, home: str) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self.board = Board()
        self.feed = Feed(
            home,
            self.board,
            shown=self._on_screen,
            changed=self._changed,
            lost=self._lost,
        )
        #: What went wrong, if that ended the program.
        self.failure: Exception | None = None
        self._columns = DEFAULT_WIDTH
        self._trouble: str | None = "connecting"
        self._message = ""
        #: What is said of the job that the cursor is on, and which one that was.
        self._sentence: str | None = None
        self._explained: JobView | None = None

    # -- its life ----------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        yield Static(id="head", markup=False)
        yield JobList()
        yield Static(id="detail", markup=False)
        yield Input(id="filter", placeholder="words that a job must have", compact=True)
        yield Static(id="keys", markup=False)

    def on_mount(self) -> None:
        loop = asyncio.get_running_loop()
        for number, status in ENDED_BY.items():
            loop.add_signal_handler(number, self.exit, status)
        self.query_one(JobList).focus()
        self._draw()
        self.run_worker(self.feed.run(), group="feed")
        # Only what is drawn: nobody is asked anything.
        self.set_interval(1.0, self._grow_older)

    def on_unmount(self) -> None:
        loop = asyncio.get_running_loop()
        for number in ENDED_BY:
            loop.remove_signal_handler(number)

    def _handle_exception(self, error: Exception) -> None:
        """End with the terminal as it was; the command line tells what went wrong."""
        if self.is_headless or sys.flags.dev_mode:
            super()._handle_exception(error)
            return
        self.failure = error
        self._return_code = 1
        self._close_messages_no_wait()

    def on_resize(self, event: Resize) -> None:
        # The size of the program itself is still the one before.
        self._columns = event.size.width
        detail = self.screen_stack[0].query_one("#detail")
        detail.display = event.size.height >= LEAST_HEIGHT
        self._draw()

    # -- what is told ------------------------------------------------------------------

    @property
    def _is_drawn(self) -> bool:
        """Whether there is a screen; there is none any more while it ends."""
        return bool(self.screen_stack and self.screen_stack[0].query("#head"))

    def _on_screen(self) -> Collection[str]:
        if not self._is_drawn:
            return ()
        jobs = self.screen_stack[0].query_one(JobList)
        chosen = jobs.selected
        return [*([] if chosen is None else [chosen.id]), *jobs.on_screen()]

    def _changed(self) -> None:
        if not self._is_drawn:
            return
        words_wanted = self._field.value.casefold().split()
        self._jobs.show(self.board.rows(words_wanted))
        self._draw()
        self._explain()

    def _lost(self, sentence: str | None) -> None:
        self._trouble = sentence
        self._draw()

    def _grow_older(self) -> None:
        if self._is_drawn:
            self._jobs.refresh()

    @property
    def _jobs(self) -> JobList:
        return self.screen_stack[0].query_one(JobList)

    @property
    def _field(self) -> Input:
        return self.screen_stack[0].query_one("#filter", Input)

    def _draw(self) -> None:
        """Everything but the list."""
        if not self._is_drawn:
            return
        screen, columns = self.screen_stack[0], self._columns
        head = words.head(self.board, columns, self._trouble)
        screen.query_one("#head", Static).update("\n".join(head))
        job = self._jobs.selected
        lines = [] if job is None else words.detail(job, self._sentence, words.now())
        fitted = "\n".join(fit(line, columns) for line in lines[:5])
        screen.query_one("#detail", Static).update(fitted)
        self._say(self._message)

    def _say(self, message: str) -> None:
        self._message = message
        if not self._is_drawn:
            return
        text = message or KEYS
        word = self._field.value
        if word and not message:
            text = f"filter: {word}, escape shows all  {KEYS}"
        keys = self.screen_stack[0].query_one("#keys", Static)
        keys.update(fit(clean(text), self._columns))

    def on_job_list_moved(self) -> None:
        self._sentence = None
        self._draw()
        self._explain()
        self.feed.wake()

    def _explain(self) -> None:
        """Ask why the job that the cursor is on is where it is, if it is not known."""
        job = self._jobs.selected
        if job is None or job is self._explained:
            return
        self._explained = job
        self.run_worker(self._ask_why(job), group="why", exclusive=True)

    async def _ask_why(self, job: JobView) -> None:
        sentence = await self.feed.why(job.id)
        if not self._is_drawn:
            return
        chosen = self._jobs.selected
        if chosen is not None and chosen.id == job.id:
            self._sentence = sentence
            self._draw()

    # -- what the keys do --------------------------------------------------------------

    def on_key(self) -> None:
        if self._message:
            self._say("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """The keys of the list mean nothing while something else is on the screen."""
        del parameters
        return action not in OF_LIST or len(self.screen_stack) == 1

    def action_leave(self, status: int) -> None:
        self.exit(status)

    def action_help(self) -> None:
        self.push_screen(Help())

    def action_log(self) -> None:
        job = self._jobs.selected
        if job is not None:
            self.push_screen(LogScreen(self.feed.client, job))

    def action_filter(self) -> None:
        self._field.display = True
        self.query_one("#keys").display = False
        self._field.focus()

    def on_input_changed(self) -> None:
        self._changed()

    def on_input_submitted(self) -> None:
        self._end_filter()

    def action_show_all(self) -> None:
        self._field.value = ""
        self._end_filter()

    def _end_filter(self) -> None:
        self._field.display = False
        self.query_one("#keys").display = True
        self._jobs.focus()
        self._changed()

    def action_act(self, what: str) -> None:
        job = self._jobs.selected
        if job is None:
            return
        refusal = _refusal(what, job)
        if refusal is not None:
            self._say(refusal)
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._act(what, job), group="act")

        question = _question(what, job)
        if question is None:
            answered(True)
            return
        name = fit(f"{job.id}  {job.repo}  {shown_title(job)}", QUESTION_COLUMNS)
        self.push_screen(Confirm(f"{clean(question)}\n{clean(name)}"), answered)

    async def _act(self, what: str, job: JobView) -> None:
        try:
            said = await self.feed.act(what, job)
        except ForgeError as error:
            said = str(error)
        else:
            said = f"{job.id[-6:]}: {said}"
        self.board.stale.add(job.id)
        self.feed.wake()
        self._say(said)

    def action_pause(self) -> None:
        job = self._jobs.selected
        if job is not None:
            self.action_act("resume" if _is_held(job) else "pause")

    def action_pause_all(self) -> None:
        pauses = self.board.status.get("pauses") or []
        paused = any(pause.get("scope") == "all" for pause in pauses)
        question = (
            "Let jobs start again?" if paused else "Start nothing more, anywhere?"
        )

        def answered(yes: bool | None) -> None:
            if yes:
                self.run_worker(self._pause_all(on=not paused), group="act")

        self.push_screen(Confirm(question), answered)

    async def _pause_all(self, *, on: bool) -> None:
        try:
            said = await self.feed.pause_all(on=on)
        except ForgeError as error:
            said = str(error)
        self._say(said)


def _question(what: str, job: JobView) -> str | None:
    """What to ask before it is done; None if it is done at once."""
    held_back = [] if job.effects is None else job.effects.held_back
    if what == "approve" and job.effects is not None and held_back:
        began = job.effects.began or "no person"
        effects = " and ".join(held_back)
        return fit(f"Allow this job to {effects}? {began} began it.", QUESTION_COLUMNS)
    return QUESTIONS.get(what)


def _is_held(job: JobView) -> bool:
    """Whether `resume` is what there is to do, and not `pause`."""
    if job.state in RESERVED:
        return job.paused
    waiting = job.waiting or {}
    return waiting.get("kind") == "pause"


def _refusal(what: str, job: JobView) -> str | None:
    """Why something cannot be done with a job, as far as that is seen from here."""
    ended = job.state in TERMINAL
    if what == "retry":
        return None if ended else "only a job that has ended can run again"
    if ended:
        return "this job has ended; r runs it again"
    asks = job.state == "waiting_for_approval"
    return "this job asks nothing" if what in ("approve", "deny") and not asks else None
