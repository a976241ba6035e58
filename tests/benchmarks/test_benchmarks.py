"""The benchmarks run and tell the truth about their shape; nothing here is timed."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from benchmarks import __main__ as command
from benchmarks import cref, service, skeleton, w2
from benchmarks.repositories import make_repositories
from benchmarks.rows import Bench, Sample
from benchmarks.wire import Answer, Refusal, request

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

JOBS = 20
needs_c = pytest.mark.skipif(
    not (shutil.which("cc") or shutil.which("gcc")), reason="there is no C compiler"
)


@needs_c
def test_the_c_reference_reports_a_rate(tmp_path: Path) -> None:
    rate = cref.CReference(tmp_path).rate(JOBS)
    assert rate is not None
    assert rate > 0


def test_without_a_compiler_the_reference_has_no_rate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    reference = cref.CReference(tmp_path)
    assert not reference.available
    assert reference.rate(JOBS) is None


@pytest.mark.parametrize("output", ["pipes", "files", "null"])
def test_the_skeleton_runs_every_job(tmp_path: Path, output: str) -> None:
    folders = [str(tmp_path)]
    assert skeleton.measure(folders, JOBS, tmp_path, warm_up=5, output=output) > 0


def test_the_document_has_its_shape(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["--json", "--rows", "cref,skeleton", "--jobs", str(JOBS)]
    code = command.main([*arguments, "--rounds", "1", "--dir", str(tmp_path)])
    document = json.loads(capsys.readouterr().out)
    assert code == 0
    heads = {"machine", "synchronous", "agent_pid", "quick", "jobs", "rounds", "rows"}
    assert set(document) == heads
    assert {"cpus", "python", "sqlite"} <= set(document["machine"])
    names = [row["name"] for row in document["rows"]]
    assert names == ["cref", "cref-cpu", "skeleton"]
    for row in document["rows"]:
        assert set(row) == {
            "name",
            "value",
            "unit",
            "ratio_to_cref",
            "bar",
            "met",
            "note",
            "limit",
        }
    assert document["rows"][-1]["value"] > 0
    assert not any(tmp_path.iterdir())


def test_a_row_that_fails_says_so_and_the_exit_code_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(service, "PROGRAM", ("false",))
    arguments = ["--json", "--rows", "w1", "--jobs", str(JOBS), "--rounds", "1"]
    code = command.main([*arguments, "--dir", str(tmp_path)])
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert code == 1
    assert row["value"] is None
    assert row["note"].startswith("failed: ServiceFailed")


@needs_c
def test_values_and_ratios_are_medians_of_the_rounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    values = iter([1.0, 100.0, 3.0])

    def measure(_: Bench) -> Iterable[Sample]:
        yield Sample("fake", next(values), "jobs/s", rate=True)

    monkeypatch.setitem(command.MEASURES, "fake", measure)
    monkeypatch.setattr(cref.CReference, "rate", lambda *_: 2.0)
    (row,) = command.run(Bench(tmp_path), ["fake"], 3, lambda _: None)
    assert (row["value"], row["ratio_to_cref"]) == (3.0, 1.5)


def test_repositories_are_real_and_distinct(tmp_path: Path) -> None:
    paths = make_repositories(tmp_path / "made", 3)
    assert len({(path / ".git").stat().st_ino for path in paths}) == 3
    assert all((path / ".git" / "HEAD").is_file() for path in paths)


def test_a_response_is_collected_from_any_pieces() -> None:
    raw = b'HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\n{"a": 1}'
    for split in range(1, len(raw)):
        answer = Answer()
        assert not answer.feed(raw[:split])
        assert answer.feed(raw[split:])
        assert answer.closes
        assert answer.result() == {"a": 1}


def test_an_error_of_the_service_is_raised() -> None:
    answer = Answer()
    assert answer.feed(b"HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}")
    with pytest.raises(Refusal, match="409"):
        answer.result()


def test_a_request_names_the_local_host_and_its_length() -> None:
    head, body = request("POST", "/v1/jobs", {"jobs": []}).split(b"\r\n\r\n")
    assert b"Host: localhost" in head
    assert f"Content-Length: {len(body)}".encode() in head


def test_a_percentile_is_one_of_the_values() -> None:
    assert w2.percentile([float(n) for n in range(1, 201)], 0.99) == 198.0
    assert w2.percentile([5.0], 0.99) == 5.0
