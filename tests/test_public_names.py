"""The public names: which there are, that each is told of, and what they cost."""

from __future__ import annotations

import importlib
import inspect
import re
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import forge_actors

#: Every public name by its module. One that goes, or is called otherwise, breaks the
#: programs of others: see design/versioning.md.
PUBLIC = {
    "forge_actors": """
        CapacityView EpicHandle EpicRequest EpicRunView EventStream EventView ForgeError
        InvalidInput JobEdit JobError JobHandle JobQuery JobRequest JobView LauncherDown
        NextTime NotFound OccurrenceView OutputStream ProviderView Refused
        RepositoryDetails RepositoryHandle RepositoryView Runtime ScheduleHandle
        ScheduleRequest ScheduleView SettingChange SettingView Settings StoreFailed
        TokenView Unavailable WorkflowHandle WorkflowRequest WorkflowView open_runtime
    """,
    "forge_actors.adapters": """
        AgentAdapter AgentEvent AgentReader AgentRun Final Invocation LimitHit LimitKind
        Login Progress Question SessionGone SessionKnown TelemetryReader Usage
        UsageAdded register
    """,
    "forge_actors.client": "BlockingClient Client connect",
    "forge_actors.kit": """
        Actor ActorStopped Inbox Keeper MAILBOX_SIZE Mailbox MailboxClosed Reply Restart
        RestartIntensityReached RestartPolicy Supervisor ask_together open_mailbox
        open_supervisor serving
    """,
    "forge_actors.testing": """
        FakeAgent FakeClock FakeControl GitHubWorld InMemory Leaked Outcome
        ScriptedAgent ScriptedJob Simulation assert_no_leaks fake_github fake_service
        install make_repository open_memory_runtime run
    """,
}
NAMES = [(module, name) for module in PUBLIC for name in PUBLIC[module].split()]
#: Names of types that are no classes: they have no docstring of their own.
ALIASES = {"AgentEvent", "LimitKind", "MAILBOX_SIZE", "Restart"}
API = Path(__file__).parents[1].joinpath("design/api.md")

#: What their methods do is told by the ports that they implement, or, of the world, by
#: what happens on GitHub.
FAKES = {"FakeClock", "FakeControl", "GitHubWorld"}

#: In a fork for each name, as what one has loaded hides what the next one lacks. What
#: is of others is loaded before: it takes most of the time.
ALONE = """
import importlib, os, sys
import anyio, apsw, h11, msgspec, psutil, trio, trio.testing
wrong = []
for place in sys.argv[1:]:
    module, name = place.split(":")
    child = os.fork()
    if child == 0:
        try:
            found = getattr(importlib.import_module(module), name)
            sys.stdout.flush()
        except BaseException as error:
            print(place, repr(error), flush=True)
            os._exit(1)
        os._exit(0)
    wrong += [place] * bool(os.waitpid(child, 0)[1])
sys.exit(bool(wrong))
"""


def public(module: str) -> list[str]:
    return list(importlib.import_module(module).__all__)


@pytest.mark.parametrize("module", PUBLIC)
def test_the_public_names_are_these_and_no_others(module: str) -> None:
    assert sorted(public(module)) == sorted(PUBLIC[module].split())


def test_each_has_a_docstring_and_so_has_what_it_offers() -> None:
    silent = []
    for module, name in NAMES:
        found = getattr(importlib.import_module(module), name)
        if name in ALIASES:
            continue
        silent += [] if _own_doc(found) else [name]
        for each, member in () if name in FAKES else _methods(found):
            silent += [] if inspect.getdoc(member) else [f"{name}.{each}"]
    assert silent == []


def _own_doc(found: Any) -> str | None:
    doc: str | None = found.__dict__.get("__doc__") if inspect.isclass(found) else None
    return doc or (None if inspect.isclass(found) else found.__doc__)


def _methods(of: Any) -> list[tuple[str, Any]]:
    if not inspect.isclass(of):
        return []
    kinds = (types.FunctionType, property, classmethod)
    return [
        (each, member)
        for each, member in vars(of).items()
        if not each.startswith("_") and isinstance(member, kinds)
    ]


@pytest.mark.parametrize("name", ["Runtime", "JobHandle", "RepositoryHandle"])
def test_a_handle_says_which_errors_it_has(name: str) -> None:
    assert "Raises:" in (getattr(forge_actors, name).__doc__ or "")


def test_each_is_on_the_page_of_the_api() -> None:
    page = API.read_text()
    names = {name for _, name in NAMES}
    assert {each for each in names if not re.search(rf"`{each}\b", page)} == set()


def test_each_can_be_imported_alone() -> None:
    # One of each file that has some, as the rest of it is the same import.
    places: dict[str, str] = {}
    for module, name in NAMES:
        found = getattr(importlib.import_module(module), name)
        home = getattr(found, "__module__", module)
        places.setdefault(f"{module} {home}", f"{module}:{name}")
    run = subprocess.run(
        [sys.executable, "-c", ALONE, *places.values()], capture_output=True, text=True
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, "", "")


def test_the_package_itself_loads_nothing() -> None:
    script = (
        "import sys, forge_actors, forge_actors.client; dir(forge_actors);"
        "loaded = {'trio', 'msgspec', 'anyio', 'apsw', 'asyncio'} & set(sys.modules);"
        "sys.exit(f'loaded: {loaded}' if loaded else 0)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_package_says_that_it_is_typed() -> None:
    assert Path(forge_actors.__file__).with_name("py.typed").exists()
