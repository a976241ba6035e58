"""The rooms of the package and the arrows between them, read from its source.

Imports within functions and for type checkers count like any other.
"""

from __future__ import annotations

import ast
import functools
import gc
import importlib
import sys
from pathlib import Path

import pytest

import forge_actors

PACKAGE = Path(forge_actors.__file__).parent
MAX_LINES = 400
STDLIB = frozenset(sys.stdlib_module_names) | {"__future__"}
AGENT = "edges.node.agent"
DASHBOARD = "cli.dashboard"
ROOMS = ("domain", "actors", "edges", "runtime", "client", "cli", "testing")

#: What the modules of a room may import, besides the standard library and their room.
ARROWS: dict[str, tuple[str, ...]] = {
    "domain": (),
    "actors": ("domain",),
    "edges": ("domain",),
    "runtime": ("actors", "edges", "domain"),
    "client": ("domain",),
    "cli": ("client", "runtime", "domain"),
    "testing": ROOMS,
}
#: The packages of others; the edges may import the one driver that each is made for.
PACKAGES: dict[str, set[str]] = {
    "domain": {"msgspec"},
    "actors": {"trio", "trio_util", "outcome", "msgspec"},
    "edges": {"trio", "trio_util", "msgspec"},
    "runtime": {"trio", "trio_util", "msgspec"},
    "client": {"anyio", "msgspec"},
    "cli": {"trio", "rich", "apsw"},
    "testing": {"trio", "trio_util", "msgspec"},
}
DRIVERS = {
    "domain.triggers": {"cronsim"},
    "edges.sqlite": {"apsw"},
    "edges.webhooks": {"h11"},
    "edges.github": {"httpx2"},
    "edges.gateway": {"h11"},
    "edges.gateway.metrics": {"prometheus_client"},
    "edges.spans": {"opentelemetry"},
    "edges.gateway.mcp": {"mcp", "mcp_types", "anyio", "httpx2"},
    "edges.machine": {"psutil"},
    "edges.cleanup.process": {"psutil"},
    "edges.node": {"psutil"},
    "client.offline": {"apsw"},
    "client.offline_events": {"apsw"},
    "client.offline_timeline": {"apsw"},
    "testing.github": {"h11"},
    "testing.leaks": {"psutil"},
    "testing.pytest_plugin": {"pytest"},
    "cli.dashboard": {"textual", "anyio", "msgspec"},
}
#: The domain reads no clock, no files and no chance; time is passed in.
IMPURE = {"asyncio", "datetime", "os", "pathlib", "random", "secrets", "shutil"}
IMPURE |= {"socket", "subprocess", "tempfile", "threading", "time", "trio", "uuid"}


class Module:
    """One file of the package: its dotted name in it, and what it imports."""

    def __init__(self, path: Path) -> None:
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        self.path = path
        self.is_package = parts[-1] == "__init__"
        self.name = ".".join(parts[:-1] if self.is_package else parts)
        self.room = parts[0]
        self.tree = ast.parse(path.read_text())
        #: Modules of this package, and top-level packages of others.
        self.ours: set[str] = set()
        self.theirs: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._add(alias.name)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{self.name}: imports are absolute"
                for alias in node.names:
                    self._add(f"{node.module}.{alias.name}")

    def _add(self, imported: str) -> None:
        top, _, rest = imported.partition(".")
        if top != "forge_actors":
            self.theirs.add(top)
        elif (name := self._module(rest)) is not None:
            self.ours.add(name)

    @staticmethod
    @functools.cache
    def _module(name: str) -> str | None:
        """The module that holds a dotted name, or the package that has it."""
        while name:
            place = PACKAGE.joinpath(*name.split("."))
            if place.with_suffix(".py").exists() or place.is_dir():
                return name
            name = name.rpartition(".")[0]
        return None

    def is_in(self, *packages: str) -> bool:
        return is_in(self.name, *packages)

    def calls(self) -> set[str]:
        """Every function that is called, as it is written."""
        return {
            ast.unparse(node.func)
            for node in ast.walk(self.tree)
            if isinstance(node, ast.Call)
        }


def is_in(name: str, *packages: str) -> bool:
    return any(f"{name}.".startswith(f"{package}.") for package in packages)


@functools.cache
def modules() -> list[Module]:
    """Every one of the package. To read them takes seconds: not each process that only
    collects the tests does."""
    # The trees stay; to look through them for cycles takes longer than to make them.
    gc.disable()
    try:
        return [Module(path) for path in sorted(PACKAGE.rglob("*.py"))]
    finally:
        gc.enable()


def of_room(*rooms: str) -> list[Module]:
    found = [module for module in modules() if module.room in rooms]
    assert found, "the room is empty, so this test says nothing"
    return found


def test_a_module_imports_only_the_rooms_its_own_may_know() -> None:
    strangers = {}
    for module in of_room(*ROOMS):  # not __init__ and __main__ of the package
        allowed = (module.room, *ARROWS[module.room])
        found = {name for name in module.ours if not is_in(name, *allowed)}
        if found:
            strangers[module.name] = found
    assert strangers == {}


def test_a_module_imports_only_the_packages_its_room_may_know() -> None:
    strangers = {}
    for module in modules():
        allowed = set(STDLIB) | PACKAGES.get(module.room, set())
        for package, drivers in DRIVERS.items():
            if module.is_in(package):
                allowed |= drivers
        if found := module.theirs - allowed:
            strangers[module.name] = found
    assert strangers == {}


def test_a_file_is_short_enough_to_be_read() -> None:
    sizes = {each.name: each.path.read_text().count("\n") for each in modules()}
    assert {name: size for name, size in sizes.items() if size > MAX_LINES} == {}


def test_every_room_is_on_the_map() -> None:
    found = {module.room for module in modules() if module.name.count(".")}
    assert found <= set(ROOMS)
    for room in ROOMS:
        assert f"\n    {room} " in (forge_actors.__doc__ or "")


def test_the_domain_is_pure() -> None:
    # Cron is arithmetic on dates, which are values as long as nobody asks for today's.
    allowed = {name: {"datetime"} for name in ("domain.triggers", "domain.timestamps")}
    impure = {
        module.name: found
        for module in of_room("domain")
        if (found := module.theirs & IMPURE - allowed.get(module.name, set()))
    }
    assert impure == {}


def test_the_domain_opens_no_files_and_awaits_nothing() -> None:
    for module in of_room("domain"):
        assert "open" not in module.calls(), module.name
        assert not any(isinstance(node, ast.Await) for node in ast.walk(module.tree))


def test_actors_and_domain_neither_print_nor_sleep_the_thread() -> None:
    for module in of_room("domain", "actors"):
        assert not {"print", "time.sleep", "sleep"} & module.calls(), module.name
        assert "time" not in module.theirs, module.name


def test_only_the_supervisor_imports_its_siblings() -> None:
    shared = {"actors", "actors.attempts", "actors.mailbox", "actors.moves"}
    shared |= {"actors.repository_messages", "actors.tokens"}
    shared |= {"actors.supervisor_messages", "actors.repository_context"}
    shared |= {"actors.asked", "actors.isolating", "actors.loading"}
    shared |= {"actors.alarm", "actors.bookkeeper", "actors.maintenance_context"}
    shared |= {"actors.maintenance_messages", "actors.pulse"}
    shared |= {"actors.projections_messages", "actors.watches"}
    shared |= {"actors.agenda", "actors.schedules_messages", "actors.wall_alarm"}
    shared |= {"actors.issue_watches_messages"}
    shared |= {"actors.wishes", "actors.lookout_messages", "actors.followed"}
    shared |= {"actors.told", "actors.workflows_messages"}
    shared |= {"actors.controllers_messages", "actors.controller_book"}
    shared |= {"actors.hosting", "actors.keeper"}
    shared |= {"actors.job_ends", "actors.submissions"}
    shared |= {"actors.epic_context", "actors.epic_run", "actors.epic_reading"}
    shared |= {"actors.epic_admission", "actors.epic_finalizing"}
    of_supervisor = ("actors.aside", "actors.caretaker", "actors.clean_up")
    of_supervisor += ("actors.mail", "actors.pressure", "actors.supervisor_context")
    of_supervisor += (
        "actors.ahead",
        "actors.closings",
        "actors.provider_accounts",
        "actors.policies",
    )
    for module in of_room("actors"):
        siblings = {name for name in module.ours if is_in(name, "actors")}
        if module.name not in ("actors.supervisor", *of_supervisor):
            assert siblings - shared == set(), module.name


def edge_of(name: str) -> str:
    """`edges.sqlite.store` belongs to `edges.sqlite`, `edges.machine` to itself."""
    return ".".join(name.split(".")[:2])


def test_edges_never_import_each_other() -> None:
    assert len({edge_of(module.name) for module in of_room("edges")}) > 1
    for module in of_room("edges"):
        others = {
            name
            for name in module.ours
            if is_in(name, "edges") and edge_of(name) != edge_of(module.name)
        }
        assert others - {"edges"} == set(), module.name


def test_the_node_agent_needs_nothing_but_python() -> None:
    agent = [module for module in modules() if module.is_in(AGENT)]
    assert agent
    for module in agent:
        assert module.theirs <= STDLIB, module.name
        assert {name for name in module.ours if not is_in(name, AGENT)} == set()


def test_the_command_line_speaks_to_the_service_without_an_event_loop() -> None:
    # The dashboard is a program of its own, which `watch` becomes.
    for module in (each for each in of_room("cli") if not each.is_in(DASHBOARD)):
        clients = {name for name in module.ours if is_in(name, "client")}
        assert "client.aio" not in clients, module.name


def test_nothing_imports_the_testing_room() -> None:
    for module in modules():
        if module.room != "testing":
            assert not any(is_in(name, "testing") for name in module.ours), module.name


@pytest.mark.parametrize("name", forge_actors.__all__)
def test_a_public_name_has_exactly_one_home(name: str) -> None:
    found = getattr(forge_actors, name)
    home = importlib.import_module(found.__module__)
    assert getattr(home, name) is found
    definitions = [
        module.name
        for module in modules()
        for node in module.tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and node.name == name
    ]
    assert definitions == [found.__module__.removeprefix("forge_actors.")]
    assert name in dir(forge_actors)


def test_a_name_that_is_not_public_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Ledger'"):
        _ = forge_actors.Ledger
    assert not hasattr(forge_actors, "nothing_like_this")


def test_type_checkers_are_told_the_same_public_names() -> None:
    [package] = [module for module in modules() if not module.name]
    told = {
        alias.asname
        for node in ast.walk(package.tree)
        if isinstance(node, ast.ImportFrom) and node.module != "__future__"
        for alias in node.names
        if alias.asname
    }
    assert told == set(forge_actors.__all__)


def test_nothing_is_left_of_a_merge() -> None:
    marks = ("<<<<<<< ", ">>>>>>> ", "|||||||")
    left = {
        each.name
        for each in modules()
        if any(line.startswith(marks) for line in each.path.read_text().splitlines())
    }
    assert left == set()
