"""What comes over the dashboard: a question to say yes or no to, and help."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static

if TYPE_CHECKING:
    from textual.app import ComposeResult
    from textual.binding import BindingType
    from textual.events import Key

HELP = """\
up down j k   one job on          enter   the output of the job
space ctrl+b  a page on, back     /       filter; escape shows all again
tab           the next section    g G     the first, the last

c  cancel the job (asks)          a  approve what it asks
r  run it again                   d  deny that (asks)
p  pause it, or let it go on      P  pause everything, or go on (asks)

Signs: > runs  | paused  . waits  ? asks  ! needs a person
       = succeeded  x failed  t timed out  c cancelled  - lost
In a log: / searches, n N go on, f follows, left and right go sideways.

q  leave; what runs goes on       any key closes this"""


class Confirm(ModalScreen[bool]):
    """Asks once; only y is yes."""

    CSS = """
    Confirm { align: center middle; }
    Confirm Static { width: auto; max-width: 90%; height: auto; padding: 1 2;
        border: solid; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,enter,q", "answer(False)", show=False),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        yield Static(f"{self._question}\n\ny yes   n no", markup=False)

    def action_answer(self, answer: bool) -> None:
        self.dismiss(answer)


class Help(ModalScreen[None]):
    """What the keys do; any of them closes it."""

    CSS = """
    Help { align: center middle; }
    Help Static { width: auto; height: auto; padding: 0 1; border: solid; }
    """

    def compose(self) -> ComposeResult:
        yield Static(HELP, markup=False)

    def on_key(self, event: Key) -> None:
        event.stop()  # what is below must not do what this key does there
        self.dismiss()
