"""Settings: defaults, a TOML file, the environment. Accepted whole or refused whole."""

from __future__ import annotations

import os
import re
import tomllib
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta, Struct, field, structs, to_builtins

from forge_actors.domain.capacity import (
    AGENTS,
    HEAVY_CHECKS,
    WORKERS,
    Limits,
    fitting,
    provider_token,
)
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import check_name
from forge_actors.domain.requests import convert, nearest
from forge_actors.edges.machine import open_files

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

Count = Annotated[int, Meta(ge=1, le=10_000)]

DEFAULT_PROVIDERS = {"codex": 3, "claude": 2, "github-copilot": 2}


class LimitSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How much may run at once."""

    workers: Count = 4
    active_repositories: Count = 4
    heavy_checks: Count = 2
    agents: Count = 4
    #: Workers of one repository; the global limit where it is not given.
    repository_workers: Count | None = None
    #: Jobs that may wait or run; further ones are refused.
    queued_jobs: Annotated[int, Meta(ge=1, le=10_000_000)] = 200_000


class PressureSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """When the machine counts as under pressure, and how many jobs may run then."""

    min_free_memory_mb: Annotated[int, Meta(ge=64)] = 512
    max_load_per_cpu: Annotated[float, Meta(ge=0.25)] = 1.5
    pressure_workers: Count = 1


class SchedulingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    #: From then on what a waiting job lacks is reserved for it.
    overtake_after: str | float = "30m"


class OutputSettings(Struct, frozen=True, forbid_unknown_fields=True):
    #: Bytes kept of each output stream of an attempt: its first and its last half.
    stream_bytes: Annotated[int, Meta(ge=64 * 1024)] = 16 * 1024 * 1024


class ProviderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Count = 1


class GatewaySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How many clients the service has at once; further ones are told to come again."""

    #: Requests held open until something happens, as `wait` and `logs -f` ask for.
    held_requests: Count = 256
    #: Connections in all; those beyond `held_requests` are left for short requests.
    connections: Count = 384


def _default_providers() -> dict[str, ProviderSettings]:
    return {name: ProviderSettings(limit) for name, limit in DEFAULT_PROVIDERS.items()}


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set. Each section is one table of `settings.toml`."""

    limits: LimitSettings = LimitSettings()
    pressure: PressureSettings = PressureSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    output: OutputSettings = OutputSettings()
    gateway: GatewaySettings = GatewaySettings()
    providers: dict[str, ProviderSettings] = field(default_factory=_default_providers)

    def __post_init__(self) -> None:
        for name in self.providers:
            check_name(name, field=f"providers.{name}")
        _ = self.overtake_after
        if self.gateway.connections <= self.gateway.held_requests:
            raise InvalidInput(
                "gateway.connections",
                "must be more than gateway.held_requests, so that a place is left",
            )

    @property
    def overtake_after(self) -> float:
        """Seconds."""
        return parse_duration(
            self.scheduling.overtake_after, field="scheduling.overtake_after"
        )

    @property
    def repository_workers(self) -> int:
        return self.limits.repository_workers or self.limits.workers

    def token_limits(self) -> Limits:
        """The limits as the supervisor counts them, by what this process may open."""
        tokens = {
            WORKERS: self.limits.workers,
            HEAVY_CHECKS: self.limits.heavy_checks,
            AGENTS: self.limits.agents,
        }
        for name, provider in self.providers.items():
            tokens[provider_token(name)] = provider.limit
        limits = Limits(
            tokens=tokens,
            active_repositories=self.limits.active_repositories,
            pressure_workers=self.pressure.pressure_workers,
            overtake_after=self.overtake_after,
        )
        return fitting(limits, open_files())


_VARIABLES: dict[str, tuple[str, str, type]] = {
    "FORGE_MAX_WORKERS": ("limits", "workers", int),
    "FORGE_MAX_ACTIVE_REPOS": ("limits", "active_repositories", int),
    "FORGE_MAX_HEAVY_CHECKS": ("limits", "heavy_checks", int),
    "FORGE_MAX_AGENT_PROCESSES": ("limits", "agents", int),
    "FORGE_PER_REPO_WORKERS": ("limits", "repository_workers", int),
    "FORGE_MIN_FREE_MEMORY_MB": ("pressure", "min_free_memory_mb", int),
    "FORGE_MAX_LOAD_PER_CPU": ("pressure", "max_load_per_cpu", float),
}


#: Variables with these beginnings are limits; one we do not know is a slip.
_PREFIXES = ("FORGE_MAX_", "FORGE_MIN_", "FORGE_PER_")


def load_settings(
    path: Path | None, environ: Mapping[str, str] = os.environ
) -> Settings:
    """The settings of a home: its file, overruled by the environment.

    Raises:
        InvalidInput: naming the file or variable, the field and what is allowed.
    """
    data: dict[str, Any] = {}
    where = ""
    if path is not None and path.exists():
        where = str(path)
        try:
            data = tomllib.loads(path.read_text("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(where, f"is no valid TOML: {error}") from None
        except OSError as error:
            raise InvalidInput(where, f"cannot be read: {error.strerror}") from None
    return settings_from(data, environ, where=where)


def settings_from(
    data: Mapping[str, Any],
    environ: Mapping[str, str] | None = None,
    *,
    where: str = "",
) -> Settings:
    """Settings from a decoded table; providers that it does not name keep their limit.

    Raises:
        InvalidInput: naming the field and what is allowed.
    """
    settings = convert(dict(data), Settings, where=where)
    settings = _with_default_providers(settings)
    return _overrule(settings, environ) if environ else settings


def checked(settings: Settings) -> Settings:
    """The same settings, whose fields were not checked when they were made.

    Raises:
        InvalidInput: naming the field and what is allowed.
    """
    return convert(to_builtins(settings), Settings)


def _with_default_providers(settings: Settings) -> Settings:
    providers = {**_default_providers(), **settings.providers}
    return structs.replace(settings, providers=providers)


def _overrule(settings: Settings, environ: Mapping[str, str]) -> Settings:
    table: dict[str, Any] = {
        section: structs.asdict(getattr(settings, section))
        for section in ("limits", "pressure", "scheduling", "output")
    }
    table["providers"] = {
        name: {"limit": provider.limit} for name, provider in settings.providers.items()
    }
    known = {*_VARIABLES, *(_variable(name) for name in settings.providers)}
    for variable in environ:
        if variable.startswith(_PREFIXES) and variable not in known:
            near = nearest(variable, known)
            hint = f"; did you mean {near}?" if near else ""
            raise InvalidInput(variable, f"is no variable of ours{hint}")
    for variable, (section, name, kind) in _VARIABLES.items():
        if variable in environ:
            table[section][name] = _number(variable, environ[variable], kind)
            convert(table, Settings, where=variable)
    for name in settings.providers:
        variable = _variable(name)
        if variable in environ:
            limit = _number(variable, environ[variable], int)
            table["providers"][name]["limit"] = limit
            convert(table, Settings, where=variable)
    return convert(table, Settings)


def _variable(provider: str) -> str:
    """The variable that sets the limit of a provider."""
    word = re.sub(r"[^A-Z0-9]", "_", provider.upper())
    if provider == "github-copilot":
        word = "GITHUB"
    return f"FORGE_MAX_{word}_PROCESSES"


def _number(variable: str, text: str, kind: type) -> object:
    try:
        return kind(text)
    except ValueError:
        raise InvalidInput(variable, f"{text!r} is no number") from None
