"""Settings: what can be set and to what. Accepted whole or refused whole."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct, field, structs, to_builtins

from forge_actors.domain.backoff import Backoff
from forge_actors.domain.branches import check_pattern
from forge_actors.domain.capacity import (
    AGENTS,
    HEAVY_CHECKS,
    WORKERS,
    Limits,
    RepositoryLimits,
    fitting,
    provider_token,
)
from forge_actors.domain.deadlines import parse_budget, parse_duration
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.looking import LookLimits
from forge_actors.domain.maintenance import CleanLimits, Policy
from forge_actors.domain.redaction import bounded
from forge_actors.domain.requests import convert, explain_mismatch
from forge_actors.domain.sizes import parse_size
from forge_actors.edges.machine import open_files
from forge_actors.runtime.artifact_settings import ArtifactSettings
from forge_actors.runtime.budget_settings import BudgetSettings
from forge_actors.runtime.effect_guard import EffectSettings
from forge_actors.runtime.epic_settings import EpicSettings
from forge_actors.runtime.gateway_settings import GatewaySettings
from forge_actors.runtime.github_settings import GitHubSettings
from forge_actors.runtime.limit_settings import (
    Count,
    LimitSettings,
    PressureSettings,
)
from forge_actors.runtime.log_settings import LogSettings
from forge_actors.runtime.maintenance_settings import MaintenanceSettings
from forge_actors.runtime.notifying import NotifySettings
from forge_actors.runtime.power import PowerSettings
from forge_actors.runtime.retention_settings import DiskSettings, RetentionSettings
from forge_actors.runtime.telemetry_settings import TelemetrySettings
from forge_actors.runtime.watch_settings import WatchdogSettings
from forge_actors.runtime.webhook_settings import WebhookTable, check_hooks
from forge_actors.runtime.worktree_settings import WorktreeSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.settings import Value

T = TypeVar("T")

DEFAULT_PROVIDERS = {"codex": 3, "claude": 2, "github-copilot": 2}

#: The sections that a running service can exchange; a change in any other one is taken
#: over by the next start.
LIVE = frozenset(
    {
        "budgets",
        *("limits", "pressure", "scheduling", "retries", "output", "providers"),
        "effects",
        *("retention", "disk", "worktrees", "artifacts", "maintenance", "status"),
        "watchdog",
    }
)

#: Seconds of the shortest period of the clean-up.
LEAST_PERIOD = 30.0
#: Seconds of the processor that a clean-up may take beyond its time.
CPU_OVERTIME = 20
_PROVIDER = re.compile(r"[a-z0-9._-]{1,64}")
#: Characters of a wrong value that an error repeats.
_SHOWN = 60


class SchedulingSettings(Struct, frozen=True, forbid_unknown_fields=True):
    #: From then on what a waiting job lacks is reserved for it.
    overtake_after: str | float = "30m"
    #: From one start to the next of jobs that come back after a limit of a provider.
    return_every: str | float = "1s"


class RetrySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How long a job that may run again waits before it does."""

    #: After its first attempt; doubled with each further one.
    first_delay: str | float = "1s"
    max_delay: str | float = "5m"


class OutputSettings(Struct, frozen=True, forbid_unknown_fields=True):
    #: Bytes kept of each output stream of an attempt: its first and its last half.
    stream_bytes: Annotated[int, Meta(ge=64 * 1024, le=1 << 40)] = 16 * 1024 * 1024


class StatusSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How the git status of the repositories is kept fresh."""

    #: Look at them at all.
    enabled: bool = True
    #: Look at those that were used last when their files change.
    watch: bool = True
    #: Of one processor, what all looks together may take.
    sample_cpu: Annotated[float, Meta(ge=0.01, le=1.0)] = 0.18
    #: From one look at a repository that nothing is known to have changed to the next.
    safety_round: str | float = "60s"
    #: That one look may take.
    timeout: str | float = "5s"


class ProviderSettings(Struct, frozen=True, forbid_unknown_fields=True):
    limit: Count = 1


def _default_providers() -> dict[str, ProviderSettings]:
    return {name: ProviderSettings(limit) for name, limit in DEFAULT_PROVIDERS.items()}


class Settings(Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that can be set. Each section is one table of `settings.toml`."""

    limits: LimitSettings = LimitSettings()
    pressure: PressureSettings = PressureSettings()
    scheduling: SchedulingSettings = SchedulingSettings()
    retries: RetrySettings = RetrySettings()
    output: OutputSettings = OutputSettings()
    status: StatusSettings = StatusSettings()
    gateway: GatewaySettings = GatewaySettings()
    log: LogSettings = LogSettings()
    telemetry: TelemetrySettings = TelemetrySettings()
    maintenance: MaintenanceSettings = MaintenanceSettings()
    retention: RetentionSettings = RetentionSettings()
    disk: DiskSettings = DiskSettings()
    worktrees: WorktreeSettings = WorktreeSettings()
    artifacts: ArtifactSettings = ArtifactSettings()
    budgets: BudgetSettings = BudgetSettings()
    notify: NotifySettings = NotifySettings()
    watchdog: WatchdogSettings = WatchdogSettings()
    power: PowerSettings = PowerSettings()
    effects: EffectSettings = EffectSettings()
    github: GitHubSettings = GitHubSettings()
    epic: EpicSettings = EpicSettings()
    webhooks: tuple[WebhookTable, ...] = ()
    providers: dict[str, ProviderSettings] = field(default_factory=_default_providers)

    def __post_init__(self) -> None:
        if math.isnan(self.pressure.max_load_per_cpu):
            raise InvalidInput("pressure.max_load_per_cpu", "nan is no number")
        _ = self.overtake_after, self.return_gap
        _ = self.look_limits()
        if self.backoff.longest < self.backoff.first:
            raise InvalidInput(
                "retries.max_delay", "must not be less than retries.first_delay"
            )
        self.retention.policies()
        self.disk.thresholds()
        check_pattern(self.worktrees.branch, field="worktrees.branch")
        _ = self.worktree_seconds, self.artifacts.seconds
        _ = self.cleaning
        self.gateway.check()
        _ = self.watchdog.seconds, self.power.grace
        self.notify.check()
        self.github.check()
        self.epic.check()
        check_hooks(self.webhooks)
        _ = self.log.size

    @property
    def overtake_after(self) -> float:
        """Seconds."""
        return parse_duration(
            self.scheduling.overtake_after, field="scheduling.overtake_after"
        )

    @property
    def return_gap(self) -> float:
        """Seconds."""
        every = self.scheduling.return_every
        return parse_duration(every, field="scheduling.return_every")

    @property
    def backoff(self) -> Backoff:
        """How long a job waits that is tried again."""
        first = parse_duration(self.retries.first_delay, field="retries.first_delay")
        longest = parse_duration(self.retries.max_delay, field="retries.max_delay")
        return Backoff(first, longest)

    def clean_rules(self) -> dict[str, Any]:
        """What a clean-up goes by.

        Raises:
            InvalidInput: naming the field.
        """
        rules = self.retention.rules()
        size = self.worktrees.archive_bytes
        rules["worktrees"] |= {
            "archive_bytes": parse_size(size, field="worktrees.archive_bytes"),
            "disposable": self.worktrees.disposable.split(),
        }
        return rules

    @property
    def worktree_seconds(self) -> float:
        """Seconds in which a worktree has to be there."""
        return parse_budget(self.worktrees.make_timeout, field="worktrees.make_timeout")

    @property
    def cleaning(self) -> Policy:
        """The clean-up as its actor knows it."""
        maintenance = self.maintenance
        period = parse_duration(maintenance.period, field="maintenance.period")
        if period < LEAST_PERIOD:
            raise InvalidInput(
                "maintenance.period", f"must not be less than {LEAST_PERIOD:g} s"
            )
        seconds = parse_duration(maintenance.time_limit, field="maintenance.time_limit")
        limits = CleanLimits(
            seconds=seconds,
            cpu_seconds=math.ceil(seconds) + CPU_OVERTIME,
            memory_bytes=maintenance.memory_mb << 20,
            scans=maintenance.scans,
            removals=maintenance.removals,
        )
        return Policy(maintenance.enabled, period, limits, self.clean_rules())

    @property
    def repository_workers(self) -> int:
        """Jobs that may run at once in one repository."""
        return self.limits.repository_workers or self.limits.workers

    def look_limits(self) -> LookLimits:
        """What looking at repositories may cost."""
        status = self.status
        return LookLimits(
            enabled=status.enabled,
            watch=status.watch,
            share=status.sample_cpu,
            period=parse_budget(status.safety_round, field="status.safety_round"),
            timeout=parse_budget(status.timeout, field="status.timeout"),
        )

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
            return_gap=self.return_gap,
            budgets=self.budgets.budgets(),
            ahead=self.limits.ahead,
        )
        return fitting(limits, open_files())

    def repository_limits(self) -> RepositoryLimits:
        """The limits as the ledger of a repository knows them."""
        known = frozenset(self.token_limits().tokens)
        return RepositoryLimits(
            self.repository_workers,
            self.overtake_after,
            known,
            self.backoff,
            self.worktrees.automatic,
        )

    def values(self) -> dict[str, Value]:
        """Every setting by its full name, such as `limits.workers`."""
        values: dict[str, Value] = {}
        for section in self.__struct_fields__:
            if section in ("providers", "budgets", "webhooks", "github", "epic"):
                continue  # what there is of them is not fixed
            values |= _values(section, getattr(self, section))
        values |= self.budgets.values() | self.notify.values() | self.github.values()
        values |= self.epic.values()
        for hook in self.webhooks:
            values |= hook.values()
        for name, provider in sorted(self.providers.items()):
            values[f"providers.{name}.limit"] = provider.limit
        return values


def _values(place: str, table: Struct) -> dict[str, Value]:
    """What a table, and those in it, set."""
    values: dict[str, Value] = {}
    for name, value in structs.asdict(table).items():
        inner = f"{place}.{name}"
        values |= _values(inner, value) if isinstance(value, Struct) else {inner: value}
    return values


def settings_from(data: Mapping[str, Any]) -> Settings:
    """Settings from a decoded table; providers that it does not name keep their limit.

    Raises:
        InvalidInput: naming the field and what is allowed.
    """
    providers = data.get("providers")
    # One by one, as an error about all of them would not say which it is.
    for name, table in providers.items() if isinstance(providers, dict) else ():
        place = f"providers.{name}"
        if not _PROVIDER.fullmatch(str(name)):
            allowed = ("1 to 64 of a-z 0-9 . _ -",)
            raise InvalidInput(place, "is no name of a provider", allowed=allowed)
        _convert(table, ProviderSettings, place)
    # Without repeating what is wrong: a URL can be a secret.
    hooks, notify = data.get("webhooks"), data.get("notify")
    for number, table in enumerate(hooks if isinstance(hooks, list) else ()):
        convert(table, WebhookTable, where=f"webhooks[{number}]")
    if isinstance(notify, dict):
        convert(notify, NotifySettings, where="notify")
    settings = _convert(dict(data), Settings, "")
    providers = {**_default_providers(), **settings.providers}
    return structs.replace(settings, providers=providers)


def checked(settings: Settings) -> Settings:
    """The same settings, whose fields were not checked when they were made.

    Raises:
        InvalidInput: naming the field and what is allowed.
    """
    return _convert(to_builtins(settings), Settings, "")


def _convert(data: Any, wanted: type[T], where: str) -> T:
    """`data` as a `wanted`; an error names what is allowed instead."""
    try:
        return msgspec.convert(data, wanted)
    except msgspec.ValidationError as mismatch:
        error = explain_mismatch(mismatch, wanted, where=where)
    place = error.field.removeprefix(where).removeprefix(".")
    kind = msgspec.inspect.type_info(wanted)
    for part in place.split(".") if place else ():
        if isinstance(data, dict) and isinstance(kind, msgspec.inspect.StructType):
            inner = {each.name: each.type for each in kind.fields}
            if part not in inner:
                names = tuple(inner)
                raise InvalidInput(error.field, error.problem, allowed=names)
            data, kind = data[part], inner[part]
    problem = f"{bounded(repr(data), _SHOWN)} is not allowed"
    raise InvalidInput(error.field, problem, allowed=(_described(kind),))


def _described(kind: msgspec.inspect.Type) -> str:
    """What a setting of this type can be, in words."""
    match kind:
        case msgspec.inspect.UnionType(types):
            if any(isinstance(one, msgspec.inspect.StrType) for one in types):
                sizes = any(isinstance(one, msgspec.inspect.IntType) for one in types)
                return (
                    "a number of bytes such as 512M or 10G"
                    if sizes
                    else "a length of time such as 90s, 30m or 2h"
                )
            none = msgspec.inspect.NoneType
            words = [_described(one) for one in types if not isinstance(one, none)]
            # First the number, then the word that may take its place.
            return " or ".join(sorted(words, reverse=True))
        case msgspec.inspect.LiteralType(values):
            return " or ".join(repr(value) for value in values)
        case msgspec.inspect.IntType(ge=least, le=most):
            return f"a whole number from {least} to {most}"
        case msgspec.inspect.FloatType(ge=least, le=most):
            return f"a number from {least:g} to {most:g}"
        case msgspec.inspect.BoolType():
            return "true or false"
        case msgspec.inspect.StrType():
            return "text"
        case _:
            return "a table"
