"""A session is recovered from what was printed, wherever that was cut off."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from forge_actors.domain.agents import AgentRun
from forge_actors.domain.jobs import AgentSpec
from forge_actors.edges.agents.finding import adapter
from forge_actors.runtime.agent_sessions import Sessions, session_of
from forge_actors.runtime.orders import log_base
from forge_actors.runtime.prompts import PromptFolder
from forge_actors.testing.agents import NAMES, install

if TYPE_CHECKING:
    from forge_actors.runtime.agent_sessions import Start

JOB = "1m8mqy3d67xk7kh06a4"
SCENES = ("success", "acts", "limit", "error", "partial", "noise")
SCENE = st.sampled_from(SCENES)


@cache
def printed(name: str, scene: str) -> tuple[bytes, str]:
    """What a program prints of a session, and how that is called."""
    with TemporaryDirectory() as folder:
        fake = install(Path(folder), name)
        fake.play(scene, reset=1_796_040_000, wait=0.0)
        run = AgentRun(str(fake.path), session=session_of(JOB, 1))
        made = adapter(name).invocation(run)
        path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
        env = {"PATH": path, "HOME": folder, **made.env}
        done = subprocess.run(
            made.argv,
            input=b"Go.",
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=env,
            cwd=folder,
            check=False,
        )
        [kept] = Path(folder).rglob("*.jsonl")
    session = kept.parent.name if name == "copilot" else kept.stem
    return done.stdout, session.rpartition("rollout-")[2][-36:]


class Keeps:
    """The adapter of a program that has kept these sessions."""

    def __init__(self, name: str, *kept: str) -> None:
        self._of = adapter(name)
        self._kept = kept

    def __getattr__(self, name: str) -> object:
        return getattr(self._of, name)

    def keeps(self, session: str, env: object) -> bool:
        return session in self._kept


def started(name: str, kept: str, *logs: bytes) -> Start:
    """How the attempt begins after some that have printed this."""
    with TemporaryDirectory() as home:
        os.mkdir(f"{home}/logs")
        prompts = PromptFolder(home)
        spec = AgentSpec(name, prompts.keep("Go.", field="prompt"))
        for attempt, data in enumerate(logs, start=1):
            Path(f"{log_base(home, JOB, attempt)}.stdout").write_bytes(data)
        of = Keeps(name, kept)
        run = AgentRun(name)
        sessions = Sessions(home, prompts)
        return sessions.start(of, spec, {}, run, JOB, len(logs) + 1)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(scene=SCENE, share=st.floats(0, 1))
def test_what_a_kill_left_of_the_output_names_its_session(
    name: str, scene: str, share: float
) -> None:
    whole, session = printed(name, scene)
    cut = int(share * len(whole))
    start = started(name, session, whole[:cut])
    # The end of a line can be missing: an event is one as soon as it is whole.
    first = whole.index(b"\n")
    if name == "codex" and cut < first:
        assert start.run.resume is None, "nobody can know it"
        assert start.run.session == session_of(JOB, 2)
    else:
        assert start.run.resume == session


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=40, deadline=None)
@given(scene=SCENE, share=st.floats(0, 1))
def test_no_session_is_resumed_that_the_program_has_not_kept(
    name: str, scene: str, share: float
) -> None:
    whole, _ = printed(name, scene)
    start = started(name, "another", whole[: int(share * len(whole))])
    assert start.run.resume is None
    assert start.run.session == session_of(JOB, 2)


def test_nothing_is_resumed_after_the_program_has_said_that_it_is_gone() -> None:
    whole, session = printed("claude", "success")
    gone = (
        b'{"type":"result","subtype":"error_during_execution","is_error":true,'
        b'"num_turns":0,"session_id":"x"}\n'
    )
    assert started("claude", session, whole).run.resume == session
    start = started("claude", session, whole, gone)
    assert (start.run.resume, start.run.anew) == (None, True)
    again = started("claude", session_of(JOB, 3), whole, gone, whole)
    assert again.run.resume == session_of(JOB, 3), "that of the new beginning"
