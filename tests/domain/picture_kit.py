"""What the tests of pictures share: a timeline with everything in it."""

from __future__ import annotations

from html.parser import HTMLParser

from forge_actors.domain.timeline import Band, Depth, Run, Timeline, Wait, shared_out

HOSTILE = (
    "</title><script>alert(1)</script><img src=x onerror=alert(1)>"
    "\x1b[31m\x07\x9b2J\u202eevil\u2066\u200b\ud800\x00\n\"'&"
)
EPOCH = 1796035000.0
WORKERS = ("workers",)


def run(job: str, began: float | None, ended: float | None, **facts: object) -> Run:
    known: dict[str, object] = {"repo": "app", "tokens": WORKERS, "kind": "check"}
    return Run(job=job, attempt=1, began=began, ended=ended, **{**known, **facts})  # type: ignore[arg-type]


def example(name: str = "lint", *, live: bool = True, **changed: object) -> Timeline:
    """Attempts with every end, waits, and stretches; `name` is wherever text can be."""
    runs = [
        run("j1", None, 600, name=name, outcome="succeeded", exit_code=0, waited=4.0),
        run("j2", 500, 1200, outcome="failed", error=name, exit_code=7),
        run("j3", 1200, 1300, outcome="timed_out", repo=name, kind=name),
        run("j4", 1300, 1300, outcome="cancelled"),
        run("j5", 1400, 2000, outcome="waiting_for_retry", tokens=("workers", name)),
        run("j6", 2000, 2100, outcome="human_attention_required"),
        run("j7", 2100, 2200, outcome="unknown"),
        run(name, 2500, None, name=name, suspended=((2600, 2700), (3000, None))),
        run("j9", 3500, 4000, outcome="succeeded"),
    ]
    fields: dict[str, object] = {
        "since": "2026-11-30T10:36:40.000Z",
        "until": "2026-11-30T11:36:40.000Z",
        "epoch": EPOCH,
        "seconds": 3600.0,
        "live": live,
        "repositories": sorted({"app", name}),
        "runs": shared_out(runs),
        "waits": [Wait("j1", "app", "queued", began=None, ended=10.0)],
        "depths": [
            Depth("app", "queued", [0.0, 1.0, 2.5, 12.0]),
            Depth("app", name, [0.5, 0.0, 0.0, 0.0]),
        ],
        "bands": [
            Band("down", -10.0, 30.0, "it was stopped"),
            Band("pressure", 100.0, 200.0, name),
            Band("pause", 3000.0, None, name, name),
        ],
        "limits": {"workers": 4},
    }
    return Timeline(**{**fields, **changed})  # type: ignore[arg-type]


EMPTY = example(repositories=[], runs=[], waits=[], depths=[], bands=[])


class Elements(HTMLParser):
    """The elements of a page in their order, each closed in its place, and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag != "meta":
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]
