"""The size of commands and environments: what is accepted, the system starts."""

from __future__ import annotations

import subprocess

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import MAX_ARGUMENT_BYTES
from forge_actors.runtime.exec_size import EXTRA, check_exec_size, exec_limit
from forge_actors.runtime.orders import allowed_environment


def start(argv: list[str], env: dict[str, str]) -> None:
    subprocess.run(argv, env={**allowed_environment(), **env}, check=True)


def test_a_variable_at_its_limit_starts_and_one_byte_more_is_named() -> None:
    """X-05"""
    env = {"NAME": "x" * (MAX_ARGUMENT_BYTES - len("NAME="))}
    check_exec_size(["true"], env, "")
    start(["true"], env)
    env["NAME"] += "x"
    with pytest.raises(
        InvalidInput, match=r"'NAME' .* 131072 bytes.*MAX_ARG"
    ) as caught:
        check_exec_size(["true"], env, "jobs[2].")
    assert caught.value.field == "jobs[2].env"
    with pytest.raises(OSError, match="Argument list too long"):
        start(["true"], env)


def test_all_that_fits_starts_and_one_byte_more_is_refused() -> None:
    """X-05"""
    size = 20_000
    taken = sum(len(n) + len(v) + 1 + EXTRA for n, v in allowed_environment().items())
    room = exec_limit() - taken - len("true") - EXTRA
    each = len("V000=") + size + EXTRA
    env = {f"V{n:03}": "x" * size for n in range(room // each - 1)}
    rest = room - len(env) * each - len("R=") - EXTRA
    env["R"] = "\N{SNOWMAN}" * (rest // 3) + "x" * (rest % 3)
    check_exec_size(["true"], env, "")
    start(["true"], env)
    env["R"] += "x"
    with pytest.raises(InvalidInput, match="ARG_MAX") as caught:
        check_exec_size(["true"], env, "")
    assert caught.value.field == "env"


def test_the_larger_part_is_named() -> None:
    argv = ["true", *["x" * 100_000] * (exec_limit() // 100_000 + 1)]
    with pytest.raises(InvalidInput, match="ARG_MAX") as caught:
        check_exec_size(argv, {"A": "1"}, "")
    assert caught.value.field == "argv"
    check_exec_size(["true", "\udcff" * 100_000], {}, "")
