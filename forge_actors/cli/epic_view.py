"""The live tree of an EPIC run, below the lines that it prints."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Self

import trio
from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from forge_actors.cli.text import clean
from forge_actors.domain.picture.epic import LOOKS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from forge_actors.domain.epic.stopping import End
    from forge_actors.domain.epic.views import ChildView, EpicView

_STYLES = {
    "running": "bold cyan",
    "ready": "cyan",
    "closed": "green",
    "done": "green",
    "held": "yellow",
    "owned": "magenta",
}
#: Seconds between two views.
REFRESH = 1.0
#: Lines of issues that are shown; those that need no look are left out first.
MAX_SHOWN = 30
_FIRST = ("running", "held", "owned", "ready", "blocked", "done", "closed")


class Plain:
    """Remembers what makes a view of a run."""

    def __init__(self) -> None:
        self.view: Callable[[], EpicView | None] = lambda: None

    def passed(self, view: Callable[[], EpicView | None]) -> None:
        self.view = view


class LiveTree(Plain):
    """Shows views of one run on standard error, and its lines above them."""

    def __init__(self) -> None:
        super().__init__()
        self._console = Console(stderr=True)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self._stack.enter_context(self._live)
        return self

    def __exit__(self, *_: object) -> None:
        # A terminal that is gone changes nothing for the run.
        with suppress(OSError, ValueError):
            self._stack.close()

    def line(self, text: str) -> None:
        self._console.print(Text(f"forge-actors: {text}"), soft_wrap=True)

    async def run(self, run: Callable[[], Awaitable[End]]) -> End:
        """Show the run while it goes on: workers tell nobody how far they are."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._refresh)
            end = await run()
            nursery.cancel_scope.cancel()
        return end

    async def _refresh(self) -> None:
        while True:
            view = self.view()
            if view is not None:
                # A terminal that is gone changes nothing for the run.
                with suppress(OSError, ValueError):
                    self._live.update(tree(view), refresh=True)
            await trio.sleep(REFRESH)


def tree(view: EpicView) -> Group:
    """The issues of an EPIC, those first that somebody has to look at."""
    order = {state: place for place, state in enumerate(_FIRST)}
    shown = sorted(view.children, key=lambda each: order.get(each.state, len(order)))
    names = f"EPIC #{view.number} of {view.repository}"
    lines = [Text(f"{names}  {clean(view.title)}", style="bold")]
    last = min(len(shown), MAX_SHOWN) - 1
    for place, child in enumerate(shown[:MAX_SHOWN]):
        branch = "└─" if place == last else "├─"
        lines.append(_line(branch, child))
    if len(shown) > MAX_SHOWN:
        lines.append(Text(f"   and {len(shown) - MAX_SHOWN} more"))
    for each in lines:
        each.no_wrap, each.overflow = True, "ellipsis"
    return Group(*lines)


def _line(branch: str, child: ChildView) -> Text:
    shows_phase = child.state in ("running", "done") and child.phase
    told = child.phase if shows_phase else child.reason
    text = Text(f"{branch} ")
    style = _STYLES.get(child.state, "dim")
    text.append(f"{LOOKS[child.state].sign} #{child.number} {child.state}", style)
    text.append(f"  {clean(child.title)}")
    if told not in (None, child.state):
        text.append(f"  {clean(str(told))}", "dim")
    return text
