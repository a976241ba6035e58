"""What holds off sleep for a service is gone with it, however that went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.acceptance.bench import survivors, wait_until_ended

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from tests.acceptance.service import LiveService

INHIBIT = """\
#!/bin/sh
echo "$@" > {told}
echo x > {bell}
read line
echo gone > {bell}
"""


def test_a_service_that_dies_lets_the_machine_sleep(
    make_service: Callable[[str], LiveService], monkeypatch: pytest.MonkeyPatch
) -> None:
    service = make_service("")
    told, bell = service.root / "told", service.bell()
    tools = service.root / "tools"
    tools.mkdir()
    program = tools / "systemd-inhibit"
    program.write_text(INHIBIT.format(told=told, bell=service.root / "bell0"))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tools), prepend=":")
    service.start()
    service.add("app")
    gate = service.gate()
    job = service.bash("app", gate.wait)
    bell.wait()
    words = told.read_text()
    assert words.startswith("--what=sleep --who=Forge Actors --why=jobs run")
    assert words.endswith("--mode=block cat\n")
    [line] = survivors(str(program))
    service.kill()
    bell.wait()
    assert wait_until_ended(int(line.split()[0]))
    service.start()
    gate.open()
    assert service.end_of(job)["state"] == "succeeded"
    bell.wait()
    service.terminate()
    bell.wait()
    assert wait_until_ended(service.pid, 0)
