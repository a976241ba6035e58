"""`doctor` says how the limits of a job are kept, and why not better."""

from __future__ import annotations

import pytest

from forge_actors.cli import doctor, doctor_system
from forge_actors.runtime import job_limits
from forge_actors.runtime.job_limits import LimitsHere


@pytest.mark.parametrize(
    ("here", "cgroup", "limits"),
    [
        (
            LimitsHere("/c", True, True, True, ""),
            ("ok", "node agents and jobs with limits get one in /c"),
            ("ok", "memory of the whole job, pids of the whole job (cgroups)"),
        ),
        (
            LimitsHere("/c", True, False, True, "/c has no pids"),
            ("ok", "node agents and jobs with limits get one in /c"),
            (
                "ok",
                "memory of the whole job, pids per user (rlimits, as /c has no pids)",
            ),
        ),
        (
            LimitsHere(None, False, False, False, "there is no cgroup version 2"),
            ("missing", "there is no cgroup version 2"),
            (
                "missing",
                (
                    "memory per process, no pids of root "
                    "(rlimits, as there is no cgroup version 2)"
                ),
            ),
        ),
    ],
    ids=["all", "some", "none"],
)
def test_what_keeps_the_limits_is_told(
    monkeypatch: pytest.MonkeyPatch,
    here: LimitsHere,
    cgroup: tuple[str, str],
    limits: tuple[str, str],
) -> None:
    monkeypatch.setattr(job_limits, "limits_here", lambda: here)
    assert doctor_system._cgroup() == doctor.Check("cgroup", *cgroup)  # type: ignore[arg-type]
    assert doctor_system._limits() == doctor.Check("limits", *limits)  # type: ignore[arg-type]
