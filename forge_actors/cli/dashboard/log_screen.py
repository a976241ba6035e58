"""The output of one job, followed until the job ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.screen import Screen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from forge_actors.cli.dashboard.board import shown_title
from forge_actors.cli.dashboard.log_lines import MAX_LINES, LogLines
from forge_actors.cli.text import clean, fit
from forge_actors.domain.errors import ForgeError

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType

    from forge_actors.client.aio import Client
    from forge_actors.domain.jobs import JobView

KEYS = "q:back /:search n N:next f:follow g G:ends left right:sideways"
#: Columns that one key goes sideways.
SIDEWAYS = 16
_FOUND = Style(reverse=True)


class LogView(ScrollView, can_focus=True):
    """Lines, of which those on the screen are drawn."""

    DEFAULT_CSS = """
    LogView { height: 1fr; scrollbar-size: 1 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "by(-1)", show=False),
        Binding("down,j", "by(1)", show=False),
        Binding("pageup,ctrl+b", "pages(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "pages(1)", show=False),
        Binding("home,g", "by(-10000000)", show=False),
        Binding("end,G", "follow", show=False),
        Binding("left,h", "sideways(-1)", show=False),
        Binding("right,l", "sideways(1)", show=False),
    ]

    class Moved(Message):
        """Somebody went to another part, or has it follow again."""

    def __init__(self) -> None:
        super().__init__()
        self.log_lines = LogLines()
        #: Whether new lines move what is shown.
        self.follows = True
        self.word = ""
        self._columns = 0

    def feed(self, data: bytes, *, final: bool = False) -> None:
        before = self.log_lines.dropped
        top = self.scroll_offset.y
        self.log_lines.feed(data, final=final)
        new = self.log_lines.lines[-data.count(b"\n") - 2 :]
        self._columns = max([self._columns, *map(cell_len, new)])
        self.virtual_size = Size(self._columns, len(self.log_lines.lines))
        if self.follows:
            self._to_end()
        elif self.log_lines.dropped > before:
            self._to(int(top) - (self.log_lines.dropped - before))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        columns, left = self.size.width, int(self.scroll_offset.x)
        number = int(self.scroll_offset.y) + y
        if number >= len(self.log_lines.lines):
            return Strip.blank(columns)
        strip = Strip(_marked(self.log_lines.lines[number], self.word))
        return strip.crop(left, left + columns).extend_cell_length(columns)

    def find(self, word: str, step: int, *, on: bool = False) -> bool:
        """Go to the next line with a word in it; whether there is one."""
        self.word = word
        self.refresh()
        top = int(self.scroll_offset.y)
        start = top + step if on else top
        place = self.log_lines.find(word, start, step)
        if place is None:
            return False
        self.follows = False
        self._to(place)
        self.post_message(self.Moved())
        return True

    def action_by(self, lines: int) -> None:
        self.follows = False
        self._to(int(self.scroll_offset.y) + lines)
        self.post_message(self.Moved())

    def action_pages(self, pages: int) -> None:
        self.action_by(pages * max(self.size.height - 1, 1))

    def action_sideways(self, way: int) -> None:
        x = int(self.scroll_offset.x) + way * SIDEWAYS
        self.scroll_to(x=max(x, 0), animate=False, force=True, immediate=True)

    def action_follow(self) -> None:
        self.follows = True
        self._to_end()
        self.post_message(self.Moved())

    def _to_end(self) -> None:
        self._to(len(self.log_lines.lines))

    def _to(self, line: int) -> None:
        last = max(len(self.log_lines.lines) - self.size.height, 0)
        y = max(0, min(line, last))
        self.scroll_to(y=y, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        if self.follows:
            # How far it can scroll is known once it is laid out.
            self.call_after_refresh(self._to_end)


class LogScreen(Screen[None]):
    """The log of a job in full."""

    CSS = """
    LogScreen Static { height: 1; }
    LogScreen #log-title { text-style: reverse; }
    LogScreen Input { display: none; height: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "back", show=False),
        Binding("f", "follow", show=False),
        Binding("slash", "search", show=False),
        Binding("n", "again(1)", show=False),
        Binding("N", "again(-1)", show=False),
    ]

    def __init__(self, client: Client, job: JobView) -> None:
        super().__init__()
        self._client = client
        self._job = job
        self._state = "waiting for output"
        #: What is to be said until somebody goes on.
        self._said = ""

    def compose(self) -> ComposeResult:
        yield Static(id="log-title", markup=False)
        yield LogView()
        yield Input(placeholder="search", compact=True)
        yield Static(id="log-keys", markup=False)

    def on_mount(self) -> None:
        self._tell()
        self.query_one(LogView).focus()
        self.run_worker(self._read(), group="log", exclusive=True)

    async def _read(self) -> None:
        view = self.query_one(LogView)
        try:
            async with self._client.logs(
                self._job.id, follow=True, tail=MAX_LINES
            ) as pieces:
                async for piece in pieces:
                    view.feed(piece)
                    self._tell("following")
            view.feed(b"", final=True)
            self._tell("ended" if view.log_lines.lines else "there is no output")
        except ForgeError as error:
            self._tell(str(error))

    def _tell(self, state: str | None = None) -> None:
        """Say what is shown, in the first and the last line."""
        self._state = self._state if state is None else state
        view, columns = self.query_one(LogView), self.size.width
        name = f"{self._job.id[-6:]} {self._job.repo} {shown_title(self._job)}"
        lines = view.log_lines
        how = self._state
        if how == "following" and not view.follows:
            how = "stopped; f follows"
        count = len(lines.lines)
        note = f"{count:,} {'line' if count == 1 else 'lines'}, {how}"
        if lines.dropped:
            note = f"the last {note}"
        note = self._said or note
        self.query_one("#log-title", Static).update(fit(clean(name), columns))
        self.query_one("#log-keys", Static).update(
            fit(f"{clean(note)}  {KEYS}", columns)
        )

    def on_resize(self) -> None:
        self._tell()

    def on_log_view_moved(self) -> None:
        self._said = ""
        self._tell()

    def action_back(self) -> None:
        field = self.query_one(Input)
        if field.display:
            self._close_search()
        else:
            self.dismiss()

    def action_follow(self) -> None:
        self.query_one(LogView).action_follow()

    def action_search(self) -> None:
        field = self.query_one(Input)
        field.display = True
        self.query_one("#log-keys").display = False
        field.focus()

    def _close_search(self) -> None:
        self.query_one(Input).display = False
        self.query_one("#log-keys").display = True
        self.query_one(LogView).focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self._close_search()
        self._find(event.value, 1, on=False)

    def action_again(self, step: int) -> None:
        word = self.query_one(LogView).word
        if word:
            self._find(word, step, on=True)

    def _find(self, word: str, step: int, *, on: bool) -> None:
        found = self.query_one(LogView).find(word, step, on=on)
        self._said = "" if found or not word else f"nothing has {word!r}"
        self._tell()


def _marked(line: str, word: str) -> list[Segment]:
    """A line with each place where the word is in it marked."""
    small, word = line.casefold(), word.casefold()
    if not word or word not in small or len(small) != len(line):
        return [Segment(line)]
    segments, place = [], 0
    while (found := small.find(word, place)) >= 0:
        segments.append(Segment(line[place:found]))
        place = found + len(word)
        segments.append(Segment(line[found:place], _FOUND))
    return [*segments, Segment(line[place:])]
