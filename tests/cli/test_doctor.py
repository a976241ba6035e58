"""`doctor` says how the limits of a job are kept, and why not better."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING, Any

import pytest

from forge_actors.cli import doctor, doctor_more, doctor_system
from forge_actors.domain.services import ManagedState
from forge_actors.runtime import job_limits, service_install
from forge_actors.runtime.job_limits import LimitsHere

if TYPE_CHECKING:
    from pathlib import Path


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


WELL: dict[str, Any] = {
    "execution_ready": True,
    "degraded": [],
    "maintenance": {"problem": None, "last": {"ended_at": "2026-01-01T00:00:00Z"}},
    "service": {"release": {"id": "1.2-abc"}},
    "release_coherent": True,
}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, ["ok", "ok", "ok"]),
        ({"maintenance": {}}, ["ok", "ok", "ok"]),
        (
            {"execution_ready": False, "reasons": ["SCHEDULER_STALLED"]},
            ["broken nothing is started: SCHEDULER_STALLED", "ok", "ok"],
        ),
        (
            {"execution_ready": False, "degraded": ["it starts: taking up the jobs"]},
            ["broken nothing is started: it starts: taking up the jobs", "ok", "ok"],
        ),
        (
            {"maintenance": {"problem": "the clean-up failed 3 times in a row: no"}},
            ["ok", "missing the clean-up failed 3 times in a row: no; ", "ok"],
        ),
        ({"release_coherent": False}, ["ok", "ok", "broken 1.2-abc serves, but "]),
        ({"release_coherent": None}, ["ok", "ok", "missing nobody can tell "]),
    ],
)
def test_each_question_about_the_service_has_an_answer_of_its_own(
    changed: dict[str, Any], expected: list[str]
) -> None:
    found = list(doctor_more.answers({**WELL, **changed}))
    assert [name for name, _, _ in found] == ["execution", "clean-up", "release"]
    for (_, state, detail), words in zip(found, expected, strict=True):
        assert f"{state} {detail}".startswith(words)


def test_libraries_are_there_in_versions_that_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, state, detail = doctor_more._libraries()
    assert (name, state) == ("libraries", "ok")
    assert f"trio {metadata.version('trio')}" in detail
    assert "mcp" not in detail, "that is an extra"
    found = {"trio": "0.30.1", "h11": "0.16.0"}

    def version(package: str) -> str:
        if package not in found:
            raise metadata.PackageNotFoundError(package)
        return found[package]

    monkeypatch.setattr(metadata, "version", version)
    _, state, detail = doctor_more._libraries()
    assert state == "broken"
    assert "trio is 0.30.1, at least 0.31 is needed" in detail
    assert "apsw is missing" in detail
    assert "h11" not in detail


def test_a_repository_whose_files_were_changed_is_named() -> None:
    class Service:
        def get(self, *_: str) -> dict[str, Any]:
            items = [("trust", "app"), ("job", "lib"), ("trust", "web")]
            return {"items": [{"kind": kind, "repo": repo} for kind, repo in items]}

    service: Any = Service()
    [(name, state, told)] = doctor_more._trust(service)
    assert (name, state) == ("trust", "missing")
    assert told.startswith("app, web: .forge/*.toml is not what was trusted")


def test_a_service_that_ends_with_its_user_is_told_of(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    launcher = tmp_path / "launch"
    launcher.write_text("")
    launcher.chmod(0o700)
    state = ManagedState("systemd", "x", True, detail="active", warning="it ends")
    monkeypatch.setattr(service_install, "installed_with", lambda _: "systemd")
    monkeypatch.setattr(service_install, "state", lambda _: state)
    told = doctor_more._managed(str(tmp_path))
    assert told == ("manager", "missing", "active; it ends")
    launcher.chmod(0o600)
    assert doctor_more._managed(str(tmp_path))[1] == "broken"
