"""What a service can tell of its own inside: its tasks, and what fills its memory."""

from __future__ import annotations

import gc
import os
import sys
import tracemalloc
from collections import Counter
from collections.abc import Sized
from typing import TYPE_CHECKING

import trio

from forge_actors.edges.machine import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.actors.pulse import Pulse

#: Types of objects that are named, the most frequent ones first.
TYPES = 100
#: Collections of our own that are named, the largest ones first.
COLLECTIONS = 50
#: Places that took memory which are named, if Python was told to keep track of them.
PLACES = 50
#: Tasks that are shown; of a crowd of connections the first ones say it all.
TASKS = 2_000
#: Frames of a task.
FRAMES = 40


def tasks_report(pulse: Pulse) -> str:
    """Every task with where it is, and every mailbox. Call it in the loop."""
    lines = ["actors: name, messages served, messages waiting, what it does"]
    for actor in pulse.actors:
        beat = actor.beat()
        does = "waits for a message" if beat.idle else "is busy"
        lines.append(f"  {actor.name}  {beat.served}  {beat.waiting}  {does}")
    lines += ["", "tasks: the innermost call of each comes last"]
    root = trio.lowlevel.current_root_task()
    tree = _tree(root) if root is not None else ()
    for shown, (task, depth) in enumerate(tree):
        if shown == TASKS:
            lines.append(f"and more than {TASKS} tasks that are not shown")
            break
        lines += _task_lines(task, "  " * depth)
    return "\n".join(lines) + "\n"


def _tree(root: trio.lowlevel.Task) -> Iterator[tuple[trio.lowlevel.Task, int]]:
    rest = [(root, 1)]
    while rest:
        task, depth = rest.pop()
        yield task, depth
        for nursery in task.child_nurseries:
            rest += ((child, depth + 1) for child in nursery.child_tasks)


def _task_lines(task: trio.lowlevel.Task, indent: str) -> Iterator[str]:
    yield f"{indent}{task.name}"
    for frame, line in list(task.iter_await_frames())[-FRAMES:]:
        code = frame.f_code
        yield f"{indent}  . {frame.f_globals.get('__name__')}:{line} {code.co_name}"


def memory_report() -> str:
    """What there is of each type, and our own largest collections.

    It takes a while with many objects: call it in a thread of its own.
    """
    lines = [f"process {os.getpid()}, resident {resident_bytes()} bytes"]
    lines.append(f"objects: {gc.get_count()} in the generations of the collector")
    types: Counter[str] = Counter()
    sizes: Counter[str] = Counter()
    collections: list[tuple[int, str]] = []
    objects = _every_object()
    for each in objects:
        kind = type(each)
        name = f"{kind.__module__}.{kind.__qualname__}"
        types[name] += 1
        sizes[name] += sys.getsizeof(each, 0)
        if kind.__module__.startswith("forge_actors"):
            collections += _collections_of(each, name)
    lines[1] = f"objects: {len(objects)} that the collector knows"
    del objects
    lines += ["", f"the {TYPES} most frequent types: objects, bytes of their own"]
    for name, count in types.most_common(TYPES):
        lines.append(f"  {count:>9}  {sizes[name]:>11}  {name}")
    lines += ["", f"our own {COLLECTIONS} largest collections: entries, where"]
    for count, name in sorted(collections, reverse=True)[:COLLECTIONS]:
        lines.append(f"  {count:>9}  {name}")
    return "\n".join([*lines, "", *_traced()]) + "\n"


def _every_object() -> list[object]:
    """What the collector knows, also what it was told to leave alone."""
    # It puts those back with the rest of today, which will be spared from now on too.
    collects, frozen = gc.isenabled(), gc.get_freeze_count()
    if not frozen:
        return gc.get_objects()
    gc.disable()
    try:
        gc.unfreeze()
        return gc.get_objects()
    finally:
        gc.freeze()
        if collects:
            gc.enable()


def _collections_of(owner: object, name: str) -> Iterator[tuple[int, str]]:
    for attribute, value in list(getattr(owner, "__dict__", {}).items()):
        counted = isinstance(value, Sized) and not isinstance(value, str | bytes)
        if counted and (count := _length(value)) > 0:
            yield count, f"{name}.{attribute}"


def _length(value: Sized) -> int:
    try:
        return len(value)
    except Exception:  # noqa: BLE001 - of an object that is half made
        return 0


def _traced() -> Iterator[str]:
    if not tracemalloc.is_tracing():
        yield "places that took memory: kept from a start with PYTHONTRACEMALLOC=1"
        return
    now, peak = tracemalloc.get_traced_memory()
    yield f"places that took memory: {now} bytes, {peak} at most"
    for statistic in tracemalloc.take_snapshot().statistics("lineno")[:PLACES]:
        frame = statistic.traceback[0]
        place = f"{frame.filename}:{frame.lineno}"
        yield f"  {statistic.size:>11}  {statistic.count:>9}  {place}"
