"""Orders: what a job gets of our environment, exactly, and what it gets from us."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.inputs import Input, InputsWanted
from forge_actors.domain.jobs import Budgets, Job, JobSpec
from forge_actors.domain.launch import ProcessLimits
from forge_actors.domain.verifying import Verify
from forge_actors.runtime.orders import (
    OrderMaker,
    allowed_environment,
    check_order,
    log_base,
)
from forge_actors.runtime.secrets import SecretFolder

if TYPE_CHECKING:
    from forge_actors.domain.ports import Store

ALLOWED = [
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR",
    "SSH_AUTH_SOCK", "LC_ALL", "LC_CTYPE", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME",
    "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "http_proxy", "https_proxy", "no_proxy", "all_proxy",
]  # fmt: skip
KEPT_BACK = [
    "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "GIT_DIR", "LD_PRELOAD", "PYTHONPATH",
    "FORGE_CONTROLLER_HOME", "FORGE_JOB_ID", "VIRTUAL_ENV", "path", "PATHS", "LC",
    "XDG", "DISPLAY", "OPENAI_API_KEY", "Http_Proxy",
]  # fmt: skip


class OneSpec:
    """The part of a store that an order is made of."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec

    def spec(self, job: str) -> JobSpec:
        assert job == "j1"
        return self._spec


def make(spec: JobSpec, home: Path = Path("/home/h")) -> OrderMaker:
    store: Store = OneSpec(spec)  # type: ignore[assignment]
    return OrderMaker(home, store, lambda: 4096)


def job(**changes: object) -> Job:
    values: dict[str, object] = {
        "id": "j1",
        "repo": "r1",
        "kind": "check",
        "priority": 2,
        "claims": (),
        "tokens": ("workers",),
        "queued_at": 1.0,
        "state": "dispatched",
        "attempt": 2,
        "fence": 9,
    }
    return Job(**(values | changes))  # type: ignore[arg-type]


def test_the_environment_of_a_job_is_this_list_and_no_more() -> None:
    environ = {name: f"v-{name}" for name in (*ALLOWED, *KEPT_BACK)}
    assert allowed_environment(environ) == {name: f"v-{name}" for name in ALLOWED}
    assert allowed_environment({}) == {}


def test_an_order_says_all_that_a_launcher_must_know() -> None:
    spec = JobSpec(
        argv=("echo", {"b64": "Y2Fm6Q=="}),
        cwd="/app/sub",
        env={"EXTRA": "1", "PATH": "/mine"},
        stdin="/file",
        budgets=Budgets(execution=60.0, idle=5.0),
        stop_signal="SIGINT",
        grace=3.0,
        keep_leftovers=True,
        pty=True,
        limits=ProcessLimits(memory=1 << 30),
        after_job="make clean",
    )
    order = make(spec)(job())
    assert order.argv == ("echo", "caf\udce9")
    assert order.env == {
        "PATH": "/mine",
        "EXTRA": "1",
        "FORGE_JOB_ID": "j1",
        "FORGE_REPO_ID": "r1",
        "FORGE_ATTEMPT": "2",
        "FORGE_FENCE": "9",
        "FORGE_CONTROLLER_HOME": "/home/h",
    }
    assert (order.job, order.repo, order.attempt, order.fence) == ("j1", "r1", 2, 9)
    assert (order.cwd, order.stdin) == ("/app/sub", "/file")
    assert order.log == log_base("/home/h", "j1", 2) == "/home/h/logs/j1.2"
    assert (order.wall, order.idle, order.output_limit) == (60.0, 5.0, 4096)
    assert (order.stop_signal, order.grace) == ("SIGINT", 3.0)
    assert order.keep_leftovers
    assert (order.pty, order.after_job) == (True, "make clean")
    assert order.limits == ProcessLimits(memory=1 << 30)


def test_the_secrets_of_a_job_are_read_when_its_order_is_made(tmp_path: Path) -> None:
    folder = SecretFolder(tmp_path)
    folder.write("TOKEN", b"a-value-\xff")
    maker = make(JobSpec(argv=("x",), cwd="/", secrets=("TOKEN",)), tmp_path)
    order = maker(job())
    assert order.secrets == {"TOKEN": "a-value-\udcff"}
    assert order.problem is None
    assert "TOKEN" not in order.env
    assert "a-value" not in repr(order)
    folder.write("TOKEN", b"another")
    assert maker(job()).secrets == {"TOKEN": "another"}
    folder.remove("TOKEN")
    order = maker(job())
    assert order.secrets == {}
    assert order.problem == "there is no secret 'TOKEN'; none is set"


def test_a_job_finds_what_it_takes_and_where_to_write_what_it_hands_on() -> None:
    inputs = (Input("j0", "build", "dist"),)
    spec = JobSpec(argv=("x",), cwd="/", outputs=("A",), inputs=inputs)
    order = make(spec)(job())
    assert order.outputs
    assert order.inputs == InputsWanted(
        "/home/h/inputs/j1.2", inputs, 1000, 1 << 30, 120.0
    )
    assert order.env["FORGE_INPUTS"] == "/home/h/inputs/j1.2"
    # Its check finds the same, and hands on nothing.
    checks = check_order(order, Verify("make test"))
    assert (checks.inputs, checks.outputs) == (order.inputs, False)
    plain = make(JobSpec(argv=("x",), cwd="/"))(job())
    assert (plain.inputs, plain.outputs) == (None, False)
    assert "FORGE_INPUTS" not in plain.env


def test_no_variable_of_a_job_overrules_ours() -> None:
    spec = JobSpec(argv=("x",), cwd="/", env={"FORGE_JOB_ID": "forged"})
    assert make(spec)(job()).env["FORGE_JOB_ID"] == "j1"


def test_only_a_dispatched_job_has_an_order() -> None:
    maker = make(JobSpec(argv=("x",), cwd="/"))
    with pytest.raises(AssertionError):
        maker(job(fence=None))
