"""What the tests of trust share: a repository that brings something along."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from forge_actors.domain.events import EventQuery
from forge_actors.domain.trust import TrustRequest, TrustView
from tests.runtime.kit import make_repository, running

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from forge_actors.runtime.control import RuntimeControl
    from forge_actors.runtime.event_stream import EventStream
    from forge_actors.runtime.runtime import Runtime

FILE = """\
[[template]]
name = "greet"
[template.parameters]
who = {}
loud = { default = false }
[template.job]
argv = ["sh", "-c", 'echo "$1 $2"', "sh", "${who}", "${loud}"]
cwd = "src"

[[schedule]]
name = "nightly"
manual = true
[schedule.job]
argv = ["true"]
effects = ["push"]
"""


@asynccontextmanager
async def trusting(tmp_path: Path) -> AsyncGenerator[tuple[Runtime, Path], None]:
    app = make_repository(tmp_path / "app")
    (app / "src").mkdir()
    (app / ".forge").mkdir()
    (app / ".forge" / "work.toml").write_text(FILE)
    # Its files are looked at when a test says so, not in the middle of a change too.
    async with running(None, status={"enabled": False}) as runtime:
        await runtime.control.add_repository(str(app))
        yield runtime, app / ".forge" / "work.toml"


async def trust(
    control: RuntimeControl,
    authorised: list[str] | None = None,
    secrets: list[str] | None = None,
) -> TrustView:
    """Trust what is there now."""
    shown = await control.trust("app")
    request = TrustRequest(shown.digest, authorised or [], secrets or [])
    return await control.trust_repository("app", request)


async def next_difference(events: EventStream) -> bool:
    """Whether the files differ, once that is told."""
    with trio.fail_after(30):
        async for event in events:
            if event.kind == "repository_trust_differs":
                return bool(event.data["differs"])
    raise AssertionError("the runtime has ended")


async def kinds(control: RuntimeControl) -> list[str]:
    page = await control.events(EventQuery(after=0, limit=1000), wait=False)
    about = ("schedule_", "repository_trust", "repository_untrust")
    return [event.kind for event in page.events if event.kind.startswith(about)]
