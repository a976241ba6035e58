"""A value stands nowhere that a shell would read."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.requests import JobRequest
from forge_actors.domain.shell_places import check_shells


@pytest.mark.parametrize(
    ("argv", "stdin", "field"),
    [
        (["sh", "-c", "echo ${x}"], None, "argv[2]"),
        (["env", "A=1", "/bin/bash", "-lc", "echo ${x}"], None, "argv[4]"),
        (["bash", "-Ec", "echo ${x}"], None, "argv[2]"),
        (["bash", "-c", "-e", "echo ${x}"], None, "argv[3]"),
        (["bash", "-c", "-o", "pipefail", "--", "echo ${x}"], None, "argv[5]"),
        (["bash", "-euo", "pipefail", "-c", "echo ${x}"], None, "argv[4]"),
        (["bash", "--rcfile", "rc", "-c", "echo ${x}"], None, "argv[4]"),
        (["fish", "--command", "echo ${x}"], None, "argv[2]"),
        (["fish", "--command=echo ${x}"], None, "argv[1]"),
        (["tcsh", "-c", "echo ${x}"], None, "argv[2]"),
        (["sh"], "echo ${x}", "stdin"),
        (["bash", "-eo", "pipefail"], "echo ${x}", "stdin"),
        (["sh", "-s", "--", "${x}"], "echo ${x}", "stdin"),
    ],
)
def test_what_a_shell_would_read_is_refused(
    argv: list[str], stdin: str | None, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_shells(JobRequest(repo="app", argv=list(argv), stdin=stdin), "job")
    assert refused.value.field == f"job.{field}"


@pytest.mark.parametrize(
    ("argv", "stdin"),
    [
        (["sh", "-c", 'echo "$1"', "sh", "${x}"], "${x}"),
        (["sh", "script.sh", "${x}"], "${x}"),
        (["make", "-c", "${x}"], "${x}"),
        (["sh", "-s", "--", "${x}"], "echo $1"),
    ],
)
def test_what_is_an_argument_or_an_input_of_a_program_is_not(
    argv: list[str], stdin: str
) -> None:
    check_shells(JobRequest(repo="app", argv=list(argv), stdin=stdin), "job")
