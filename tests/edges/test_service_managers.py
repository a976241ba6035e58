"""What managers of services are given, and what they are told to do."""

from __future__ import annotations

import getpass
import plistlib
import re
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.domain.errors import ServiceManagerFailed
from forge_actors.domain.services import ManagedService, service_name
from forge_actors.edges.services import launchd
from forge_actors.edges.services.launchd import Launchd
from forge_actors.edges.services.systemd import Systemd, quoted, unit, unit_path
from forge_actors.runtime import service_install

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.domain.services import Manager

ODD = 'a b/100%/x&y$HOME/it\'s "quoted" \\back/ä'

#: Stands in for `systemctl` and `loginctl`: it writes down what it is asked.
SYSTEMCTL = """\
#!/bin/sh
echo "$(basename "$0") $*" >> {calls}
case "$*" in
    *{failing}*) echo "it would not" >&2; exit 5 ;;
    *show-environment*) ;;
    *show-user*) echo Linger={linger} ;;
    *" show "*) printf 'ActiveState=active\\nSubState=running\\nMainPID=4711\\n'
        printf 'UnitFileState=enabled\\nResult=success\\n' ;;
esac
"""


class Managed:
    """A service, and a systemd that only notes what it is told."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.root = root
        self._patch = patch
        self._calls = root / "calls"
        home = str(root / "home")
        self.service = ManagedService(
            service_name(home), home, f"{home}/launch", f"{home}/service.log"
        )
        self.answers()

    def answers(self, linger: str = "yes", failing: str = "nothing-fails") -> None:
        programs = self.root / "bin"
        programs.mkdir(exist_ok=True)
        for name in ("systemctl", "loginctl", "launchctl"):
            text = SYSTEMCTL.format(
                calls=self._calls, linger=linger, failing=f'"{failing}"'
            )
            (programs / name).write_text(text)
            (programs / name).chmod(0o755)
        self._patch.setenv("PATH", f"{programs}:/usr/bin:/bin")
        self._patch.setenv("XDG_CONFIG_HOME", str(self.root / "config"))
        self._patch.setenv("HOME", str(self.root))

    def calls(self) -> list[str]:
        lines = self._calls.read_text().splitlines() if self._calls.exists() else []
        self._calls.unlink(missing_ok=True)
        return [line.replace(self.service.name, "NAME") for line in lines]


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Managed:
    return Managed(tmp_path, monkeypatch)


def test_a_unit_is_installed_looked_at_and_taken_out(managed: Managed) -> None:
    systemd = Systemd()
    assert systemd.is_here()
    managed.calls()
    assert systemd.install(managed.service, start=True) == []
    assert managed.calls() == [
        "systemctl --user show-environment",
        "systemctl --user daemon-reload",
        "systemctl --user enable NAME.service",
        "systemctl --user restart NAME.service",
        f"loginctl show-user {getpass.getuser()} --property=Linger",
    ]
    path = unit_path(managed.service)
    assert path.stat().st_mode & 0o077 == 0
    state = systemd.state(managed.service)
    assert (state.installed, state.enabled, state.active) == (True, True, True)
    assert (state.pid, state.detail) == (4711, "active (running)")
    assert state.warning is None
    managed.calls()
    systemd.uninstall(managed.service)
    assert "systemctl --user disable --now NAME.service" in managed.calls()
    assert not path.exists()
    systemd.uninstall(managed.service)
    assert managed.calls() == []


def test_who_logs_out_and_takes_the_service_along_is_told(managed: Managed) -> None:
    managed.answers(linger="no")
    [note] = Systemd().install(managed.service, start=False)
    assert "loginctl enable-linger" in note
    assert Systemd().state(managed.service).warning == note
    assert not any("restart" in call for call in managed.calls())


@pytest.mark.parametrize("failing", ["restart", ""], ids=["at the end", "at once"])
def test_an_installation_that_fails_leaves_nothing(
    managed: Managed, failing: str
) -> None:
    managed.answers(failing=failing)
    home = managed.root / "home"
    home.mkdir(exist_ok=True)
    with pytest.raises(ServiceManagerFailed, match="it would not"):
        service_install.install(home, "systemd", start=True)
    assert service_install.installed_with(home) is None
    disabled = any("disable --now" in call for call in managed.calls())
    assert disabled == (failing == "restart")
    assert not list((managed.root / "config").rglob("*.service"))


@pytest.mark.parametrize("manager", ["systemd", "launchd"])
def test_without_the_programs_of_a_manager_nothing_is_written(
    managed: Managed, manager: Manager
) -> None:
    home = managed.root / "home"
    home.mkdir(exist_ok=True)
    managed._patch.setenv("PATH", str(home))
    with pytest.raises(ServiceManagerFailed, match=r"there is no (system|launch)ctl"):
        service_install.install(home, manager, start=False)
    assert service_install.installed_with(home) is None
    assert {path.name for path in managed.root.iterdir()} == {"bin", "home"}


def test_another_release_starts_with_what_it_was_installed_with(
    managed: Managed, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = managed.root / "home"
    home.mkdir(exist_ok=True)
    for name in ("LC_NO.NAME", "LC_É", "LC_\udce9", "LC_X"):
        monkeypatch.setenv(name, "x")
    monkeypatch.setenv("LANG", "it's\nodd")
    service_install.install(home, "systemd", start=False)
    first = (home / "launch").read_text()
    assert re.findall("LC_.*", first) == ["LC_X=x"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert service_install.renew_launcher(home)
    assert (home / "launch").read_text() == first


def test_a_manager_that_fails_says_why(managed: Managed) -> None:
    managed.answers(failing="enable")
    with pytest.raises(ServiceManagerFailed, match="it would not"):
        Systemd().install(managed.service, start=True)
    (managed.root / "bin" / "systemctl").unlink()
    managed._patch.setenv("PATH", str(managed.root / "bin"))
    assert not Systemd.is_here()


def test_a_unit_says_how_jobs_outlive_it(managed: Managed) -> None:
    text = unit(managed.service)
    for line in (
        "Type=notify",
        "NotifyAccess=main",
        "KillMode=process",
        "OOMPolicy=continue",
        "Restart=on-failure",
        "Delegate=yes",
    ):
        assert f"\n{line}\n" in text
    assert "\nWatchdogSec=" in text


@pytest.mark.parametrize("place", ["plain", ODD, "tab\there", "x\\"])
def test_systemd_reads_a_unit_as_it_was_meant(place: str, tmp_path: Path) -> None:
    """Checked by systemd's own reader, without a systemd that runs."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("NOT RUN: there is no systemd-analyze here")
    home = tmp_path / place
    home.mkdir(parents=True)
    launcher = home / "launch"
    launcher.write_text("#!/bin/sh\n")
    launcher.chmod(0o755)
    service = ManagedService("forge-actors-1", str(home), str(launcher), "log")
    path = tmp_path / "forge-actors-1.service"
    path.write_text(unit(service))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_us = [line for line in done.stderr.splitlines() if "forge-actors" in line]
    assert (done.returncode, about_us) == (0, []), done.stderr


def test_a_program_that_no_unit_can_name_is_refused() -> None:
    with pytest.raises(ServiceManagerFailed, match="line break"):
        quoted("/a\nb")
    assert quoted('/a "b" $x 100% \\') == '"/a \\"b\\" $$x 100%% \\\\"'


def test_launchd_is_given_a_list_that_it_can_read(managed: Managed) -> None:
    agent = Launchd()
    agent.install(managed.service, start=True)
    path = launchd.plist_path(managed.service)
    found = plistlib.loads(path.read_bytes())
    assert found["ProgramArguments"] == [managed.service.launcher]
    assert found["KeepAlive"] == {"SuccessfulExit": False}
    assert found["AbandonProcessGroup"] is True
    assert any("bootstrap" in call for call in managed.calls())
    agent.uninstall(managed.service)
    assert not path.exists()


def test_each_home_has_a_service_of_its_own() -> None:
    assert service_name("/a") == service_name("/a") != service_name("/b")
    assert service_name("/\udcff").startswith("forge-actors-")
