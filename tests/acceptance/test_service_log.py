"""What a detached service says of itself: in a file that others may move away."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

from tests.acceptance.bench import wait_for_words

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.acceptance.service import LiveService


def objects(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_log_for_programs_goes_on_in_a_new_file_after_a_hang_up(
    make_service: Callable[[str], LiveService],
) -> None:
    table = '[log]\nformat = "json"\n[limits]\nworkers = '
    service = make_service(f"{table}2\n")
    service.start()
    log = service.home / "service.log"
    assert any(line.get("event") == "ready" for line in objects(log))
    log.rename(log.with_suffix(".log.1"))
    service.write_settings(f"{table}3\n")
    os.kill(service.pid, signal.SIGHUP)
    service.until(None, "settings_changed")  # the new file is there by then
    wait_for_words(log, "the settings were reloaded")
    # What is not logged but said goes there too.
    outputs = [os.readlink(f"/proc/{service.pid}/fd/{n}") for n in (1, 2)]
    assert outputs == [str(log)] * 2
    service.cli("stop", status=0)
    first = objects(log)[0]
    assert set(first) == {"at", "level", "logger", "message"}
    told = "the settings were reloaded: limits.workers 2 -> 3"
    assert first["message"].startswith(told)
    assert log.stat().st_mode & 0o777 == 0o600
