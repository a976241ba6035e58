"""The list of jobs: draws the lines that are on the screen, however many there are."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from forge_actors.cli.dashboard import words
from forge_actors.cli.dashboard.board import Heading

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.binding import BindingType

    from forge_actors.cli.dashboard.board import Row
    from forge_actors.domain.jobs import JobView

_PLAIN = Style()
_HEADING = Style(bold=True)
_CURSOR = Style(reverse=True)


class JobList(ScrollView, can_focus=True):
    """The rows of a board, with a cursor that stays on the job that somebody chose."""

    DEFAULT_CSS = """
    JobList { height: 1fr; scrollbar-size-vertical: 1; overflow-x: hidden; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("pageup,ctrl+b", "page(-1)", show=False),
        Binding("pagedown,ctrl+f,space", "page(1)", show=False),
        Binding("home,g", "top", show=False),
        Binding("end,G", "move(10000000)", show=False),
        Binding("tab,right_square_bracket", "section(1)", show=False),
        Binding("shift+tab,left_square_bracket", "section(-1)", show=False),
    ]

    class Moved(Message):
        """The cursor is on another job."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[Row] = ()
        self._cursor = 0
        self._job: str | None = None
        #: Nobody has moved it, or to the first job: it stays there.
        self._at_top = True
        self._repo = words.REPO

    @property
    def selected(self) -> JobView | None:
        """The job that the cursor is on."""
        if self._cursor >= len(self._rows):
            return None
        row = self._rows[self._cursor]
        return None if isinstance(row, Heading) else row

    def on_screen(self) -> list[str]:
        """The jobs of which something is to be seen."""
        top = int(self.scroll_offset.y)
        shown = self._rows[top : top + max(self.size.height, 1)]
        return [row.id for row in shown if not isinstance(row, Heading)]

    def show(self, rows: Sequence[Row]) -> None:
        """Show these; the cursor stays on its job, where that was, or at the top."""
        self._rows = rows
        self._repo = words.repo_columns(
            row for row in rows if not isinstance(row, Heading)
        )
        self.virtual_size = Size(0, len(rows))
        place = 0
        if not self._at_top:
            ids = (None if isinstance(row, Heading) else row.id for row in rows)
            found = (n for n, job in enumerate(ids) if job == self._job)
            place = next(found, min(self._cursor, len(rows) - 1))
        self._put(place, 1)
        self.refresh()

    def render_line(self, y: int) -> Strip:
        number, columns = int(self.scroll_offset.y) + y, self.size.width
        if number >= len(self._rows):
            return Strip.blank(columns)
        row = self._rows[number]
        if isinstance(row, Heading):
            segments = [Segment(words.heading(row), _HEADING)]
        else:
            line = words.line(row, columns, words.now(), self._repo)
            segments = _segments(line, chosen=number == self._cursor)
        whole = Strip(segments).adjust_cell_length(
            columns, _CURSOR if number == self._cursor else _PLAIN
        )
        return whole.crop(0, columns)

    def action_move(self, by: int) -> None:
        self._at_top = False
        self._put(self._cursor + by, 1 if by > 0 else -1)

    def action_top(self) -> None:
        self._at_top = True
        self._put(0, 1)

    def action_page(self, by: int) -> None:
        self.action_move(by * max(self.size.height - 1, 1))

    def action_section(self, by: int) -> None:
        """To the first job of the next section, or of the one before."""
        self._at_top = False
        heads = [n for n, row in enumerate(self._rows) if isinstance(row, Heading)]
        if by > 0:
            after = [n for n in heads if n > self._cursor]
            if after:
                self._put(after[0] + 1, 1)
            return
        before = [n for n in heads if n + 1 < self._cursor]
        if before:
            self._put(before[-1] + 1, 1)

    def _put(self, place: int, way: int) -> None:
        """Put the cursor there, or on the next job that way, or on the last one."""
        last = len(self._rows) - 1
        place = max(0, min(place, last))
        while 0 <= place <= last and isinstance(self._rows[place], Heading):
            place += way
        if place < 0:
            place = min(1, last)
        before = self._job
        self._cursor = max(0, min(place, last))
        row = self.selected
        self._job = None if row is None else row.id
        self._bring_into_view()
        self.refresh()
        if self._job != before:
            self.post_message(self.Moved())

    def _bring_into_view(self) -> None:
        height, top = self.size.height, int(self.scroll_offset.y)
        # The heading above the first job of a section is seen with it.
        first = self._cursor
        if first and isinstance(self._rows[first - 1], Heading):
            first -= 1
        if first < top:
            self.scroll_to(y=first, animate=False, force=True, immediate=True)
        elif height and self._cursor >= top + height:
            below = self._cursor - height + 1
            self.scroll_to(y=below, animate=False, force=True, immediate=True)

    def on_resize(self) -> None:
        self._bring_into_view()


def _segments(line: words.Line, *, chosen: bool) -> list[Segment]:
    style = Style(color=line.color, reverse=chosen)
    rest = _CURSOR if chosen else _PLAIN
    return [
        Segment(f"{line.sign} ", style),
        Segment(f"{line.state} ", style),
        Segment(line.rest, rest),
    ]
