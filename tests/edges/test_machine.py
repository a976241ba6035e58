"""The machine's pressure: memory, load, stalls, and the limits of a container."""

from __future__ import annotations

import time
from collections import namedtuple
from typing import TYPE_CHECKING

import psutil
import pytest

from forge_actors.edges import machine
from forge_actors.edges.machine import Clock, PressureGauge, usable_cpus

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
Memory = namedtuple("Memory", "available")  # noqa: PYI024 - as psutil has it


@pytest.fixture
def calm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with 8 GiB free, no load and no container; the folder of its /proc."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(8 * GIB))
    monkeypatch.setattr(psutil, "getloadavg", lambda: (0.0, 0.0, 0.0))
    monkeypatch.setattr(machine, "_PSI", tmp_path / "pressure")
    monkeypatch.setattr(machine, "_own_cgroup", lambda: None)
    return tmp_path


def gauge() -> PressureGauge:
    return PressureGauge(min_free_memory_mb=512, max_load_per_cpu=1.5)


def test_a_calm_machine_has_no_pressure(calm: Path) -> None:
    assert gauge()() is None


def test_little_memory_is_pressure(calm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(GIB // 2 - 1))
    assert gauge()() == "511 MB of memory are free, 512 are wanted"
    monkeypatch.setattr(psutil, "virtual_memory", lambda: Memory(GIB // 2))
    assert gauge()() is None


def test_load_counts_per_processor_we_may_use(
    calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "usable_cpus", lambda: 4)
    monkeypatch.setattr(psutil, "getloadavg", lambda: (6.0, 0.0, 0.0))
    assert gauge()() is None
    monkeypatch.setattr(psutil, "getloadavg", lambda: (6.4, 0.0, 0.0))
    assert gauge()() == "the load is 1.60 per CPU, 1.50 is the limit"


def test_stalls_are_pressure(calm: Path) -> None:
    lines = "some avg10=99.00 avg60=0.00 avg300=0.00 total=1\n"
    (calm / "pressure").write_text(f"{lines}full avg10=10.00 avg60=0.00 total=1\n")
    assert gauge()() is None
    (calm / "pressure").write_text(f"{lines}full avg10=42.50 avg60=0.00 total=1\n")
    assert gauge()() == "processes waited for memory 42 % of the last 10 s"
    (calm / "pressure").write_text("")
    assert gauge()() is None


def test_the_limit_of_a_container_counts(
    calm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "_own_cgroup", lambda: calm)
    (calm / "memory.max").write_text(f"{2 * GIB}\n")
    (calm / "memory.current").write_text(f"{2 * GIB - GIB // 4}\n")
    assert gauge()() == "256 MB of memory are free, 512 are wanted"
    # What the kernel can drop at once is free.
    (calm / "memory.stat").write_text(f"anon 5\ninactive_file {GIB}\nslab 1\n")
    assert gauge()() is None
    (calm / "memory.max").write_text("max\n")
    assert gauge()() is None


def test_the_cgroup_is_the_nearest_one_with_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cgroups = tmp_path / "cgroup"
    deep = cgroups / "user" / "session"
    deep.mkdir(parents=True)
    proc = tmp_path / "self"
    proc.write_text("1:cpu:/elsewhere\n0::/user/session\n")

    def path(text: str) -> Path:
        return proc if text == "/proc/self/cgroup" else type(tmp_path)(text)

    monkeypatch.setattr(machine, "_CGROUPS", cgroups)
    monkeypatch.setattr(machine, "Path", path)
    assert machine._own_cgroup() is None
    (deep / "memory.max").write_text("max\n")
    (cgroups / "user" / "memory.max").write_text("1000000\n")
    assert machine._own_cgroup() == cgroups / "user"
    (deep / "memory.max").write_text("2000000\n")
    assert machine._own_cgroup() == deep
    proc.write_text("1:cpu:/elsewhere\n")  # version 1 only
    assert machine._own_cgroup() is None


def test_the_real_machine_can_be_looked_at() -> None:
    asked = PressureGauge(min_free_memory_mb=1 << 40, max_load_per_cpu=1e9)
    assert "MB of memory are free" in str(asked())
    assert usable_cpus() >= 1


def test_the_clock_is_the_wall_clock() -> None:
    before = time.time()
    assert before <= Clock().now() <= time.time()
