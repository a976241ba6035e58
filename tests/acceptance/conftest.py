"""Fixtures: a running service, a place without one, and a limit for every test."""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import FakeAgent, install
from tests.acceptance.bench import Bench
from tests.acceptance.service import LiveService

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TEST_SECONDS = 120


@pytest.fixture(autouse=True)
def limit() -> Iterator[None]:
    """A test that hangs fails; a held request has no limit of its own."""

    def too_slow(*_: object) -> None:
        raise TimeoutError(f"the test took longer than {TEST_SECONDS} s")

    before = signal.signal(signal.SIGALRM, too_slow)
    signal.setitimer(signal.ITIMER_REAL, TEST_SECONDS)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """A place for files, without a service."""
    place = Bench()
    # The home that `run` makes, and keeps if something fails, is made here.
    monkeypatch.setenv("TMPDIR", str(place.root))
    yield place
    place.close()


@pytest.fixture
def make_service() -> Iterator[Callable[[str], LiveService]]:
    """Makes homes with settings of their own; nothing runs on them yet."""
    made: list[LiveService] = []

    def make(settings: str = "") -> LiveService:
        made.append(LiveService(settings))
        return made[-1]

    yield make
    for service in made:
        service.close()


@pytest.fixture
def unwatched(make_service: Callable[[str], LiveService]) -> LiveService:
    """The same, which looks at no repository: all that it has open is for its clients.

    Otherwise it opens one descriptor more, for good, once it watches the first one.
    """
    started = make_service("[status]\nenabled = false\n")
    started.start()
    started.add("app")
    return started


@pytest.fixture
def claude(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> tuple[LiveService, FakeAgent]:
    """A service with one repository that finds a program playing Claude Code."""
    service = make_service("")
    fake = install(service.root / "bin", "claude")
    path = f"{fake.path.parent}{os.pathsep}{os.environ['PATH']}"
    monkeypatch.setenv("PATH", path)
    service.start()
    service.add("app")
    return service, fake


@pytest.fixture
def service(make_service: Callable[[str], LiveService]) -> LiveService:
    """A running service with one repository, `app`."""
    started = make_service("")
    started.start()
    started.add("app")
    return started
