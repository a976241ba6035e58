"""A recorded pid that now belongs to somebody else, for real: in pid namespaces."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest
import trio
from msgspec import convert

from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.sweep import still_alive, sweep
from tests.edges.node_jobs import ROOT
from tests.namespaces import CHOOSE_PID, UNSHARE, needs_namespace

#: Of this run alone: a sweep ends what carries the mark, whoever started it.
KEY = (f"job-of-a-stranger-{os.getpid()}", 1)

pytestmark = needs_namespace

PRELUDE = f"""
import json, os, subprocess, sys, trio
from msgspec import to_builtins
sys.path.insert(0, {str(ROOT)!r})
from forge_actors.domain.launch import ProcessIdentity
from forge_actors.edges.node.agent import tree
from forge_actors.edges.node.sweep import still_alive, sweep
KEY = {KEY!r}
{CHOOSE_PID}
def sleeper(pid=None):
    if pid is not None:
        choose_pid(pid)
    return subprocess.Popen(["sleep", "60"], start_new_session=True)

def identity(process):
    start = tree.start_ticks(process.pid)
    return ProcessIdentity(tree.boot_id(), process.pid, start, tree.pid_namespace())

def end(process):
    process.kill()
    process.wait()
"""


async def inside(script: str) -> Any:
    """What a script prints as JSON that is the first process of a namespace."""
    command = [*UNSHARE, sys.executable, "-c", PRELUDE + script]
    done = await trio.run_process(command, capture_stdout=True)
    return json.loads(done.stdout)


async def test_a_stranger_with_a_recorded_pid_gets_no_signal() -> None:
    told = await inside(
        "victim = sleeper()\n"
        "recorded = identity(victim)\n"
        "end(victim)\n"
        "while tree.boot_ns() // tree._TICK_NS == recorded.start_ticks:\n"
        "    pass\n"
        "stranger = sleeper(victim.pid)\n"
        "left = trio.run(sweep, {KEY: recorded})[KEY]\n"
        "print(json.dumps([stranger.pid == recorded.pid, stranger.poll(),\n"
        "    len(left), len(still_alive([recorded]))]))\n"
        "end(stranger)\n"
    )
    assert told == [True, None, 0, 0]


async def test_what_a_stranger_left_in_its_session_gets_no_signal() -> None:
    """The number of the session is the recorded one, and its holder is gone."""
    told = await inside(
        "victim = sleeper()\n"
        "recorded = identity(victim)\n"
        "end(victim)\n"
        "choose_pid(victim.pid)\n"
        "stranger = subprocess.Popen(\n"
        '    ["bash", "-c", "sleep 60 >/dev/null & echo $!"], start_new_session=True,\n'
        "    stdout=subprocess.PIPE)\n"
        "child = int(stranger.communicate()[0])\n"
        "left = trio.run(sweep, {KEY: recorded})[KEY]\n"
        "print(json.dumps([stranger.pid == recorded.pid, child, tree.lives(\n"
        "    child, tree.start_ticks(child)), [each.pid for each in left]]))\n"
        "os.kill(child, 9)\n"
    )
    same, child, lives, left = told
    assert same
    assert lives
    # Nothing proves that it is not of the attempt either.
    assert left == [child]


def first_or_not(monkeypatch: pytest.MonkeyPatch, first: bool) -> None:
    """From the first namespace all can be seen; here we may be in any."""
    namespace = tree.pid_namespace() if first else 1
    monkeypatch.setattr(tree, "FIRST_NAMESPACE", namespace)


@pytest.mark.parametrize("first", [True, False])
async def test_a_pid_of_another_namespace_gets_no_signal(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    first_or_not(monkeypatch, first)
    canary = await trio.lowlevel.open_process(["sleep", "60"])
    try:
        told = await inside(
            f"process = sleeper({canary.pid})\n"
            "print(json.dumps(to_builtins(identity(process))))\n"
        )
        recorded = convert(told, ProcessIdentity)
        assert recorded.pid == canary.pid
        assert recorded.boot_id == tree.boot_id()
        assert recorded.namespace != tree.pid_namespace()
        # It ended with its namespace, which not everybody can see.
        left = () if first else (recorded,)
        assert await sweep({KEY: recorded}) == {KEY: left}
        assert still_alive([recorded]) == left
        assert canary.poll() is None
    finally:
        canary.kill()
        await canary.wait()


@pytest.mark.parametrize("first", [True, False])
async def test_what_lives_in_another_namespace_is_named_and_gets_no_signal(
    monkeypatch: pytest.MonkeyPatch, first: bool
) -> None:
    first_or_not(monkeypatch, first)
    script = (
        "process = sleeper()\n"
        "print(json.dumps(to_builtins(identity(process))), flush=True)\n"
        "process.wait()\n"
    )
    command = [*UNSHARE, sys.executable, "-c", PRELUDE + script]
    other = await trio.lowlevel.open_process(command, stdout=subprocess.PIPE)
    try:
        assert other.stdout is not None
        async with other.stdout as output:
            recorded = convert(json.loads(await output.receive_some()), ProcessIdentity)
        [left] = (await sweep({KEY: recorded}))[KEY]
        assert still_alive([recorded, left]) == (recorded, left)
        if first:  # it is named as we see it
            assert left.namespace == tree.pid_namespace()
            assert tree.nested_pids(left.pid) == [recorded.pid]
    finally:
        other.kill()
        await other.wait()
