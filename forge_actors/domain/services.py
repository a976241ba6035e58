"""The service of a home, as a manager of services of the system sees it."""

from __future__ import annotations

import hashlib
from typing import Literal, Protocol

from msgspec import Struct

Manager = Literal["systemd", "launchd", "portable"]
MANAGERS: tuple[Manager, ...] = ("systemd", "launchd", "portable")
#: Hexadecimal digits of a home in the name of its service.
DIGITS = 12


class ManagedService(Struct, frozen=True):
    """What a manager is to keep running. It starts a program that stays where it is
    when the release changes."""

    name: str
    home: str
    launcher: str
    #: What the service says goes there, where the manager keeps no log of its own.
    log: str


class ManagedState(Struct, frozen=True):
    """What a manager says of the service of a home."""

    manager: Manager
    name: str
    installed: bool
    #: It starts with the machine, or when its user logs in.
    enabled: bool = False
    active: bool = False
    pid: int | None = None
    #: What the manager goes by.
    file: str | None = None
    detail: str = ""
    #: What a person should know of it.
    warning: str | None = None


class ServiceManager(Protocol):
    """One manager. Every method may raise ServiceManagerFailed."""

    @property
    def kind(self) -> Manager: ...

    def install(self, service: ManagedService, *, start: bool) -> list[str]:
        """Keep it running from now on; what a person should know besides."""

    def uninstall(self, service: ManagedService) -> list[str]:
        """Stop it, and start it no more. What its jobs do goes on."""

    def state(self, service: ManagedService) -> ManagedState: ...

    def log_command(
        self, service: ManagedService, lines: int, *, follow: bool
    ) -> list[str]:
        """What prints the last lines that it said, and follows them."""


def service_name(home: str) -> str:
    """The same for a home whatever it is called from, and another one for another."""
    digest = hashlib.sha256(home.encode("utf-8", "surrogateescape")).hexdigest()
    return f"forge-actors-{digest[:DIGITS]}"
