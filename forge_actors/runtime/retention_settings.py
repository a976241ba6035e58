"""The sections `retention` and `disk` of the settings: what of a home may go, and when
there is too little room.

A limit of `off` is none. `keep = "all"` switches a class off, or with
`retention.keep` all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from msgspec import Meta, Struct, to_builtins

from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.disk import Thresholds
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.retention import DEFAULTS, OFF, Policy
from forge_actors.domain.sizes import parse_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.cleaning import CleanClass

#: `all`: nothing is removed; `limits`: what the limits do not let stay.
Keep = Literal["all", "limits"]
#: Seconds, or a length of time, or `off`.
Age = str | float
#: A number of things, or `off`.
Many = Annotated[int, Meta(ge=0, le=1_000_000_000)] | Literal["off"]
#: Bytes, or a size such as `10G`, or `off`.
Size = Annotated[int, Meta(ge=0, le=1 << 50)] | str

NO_LIMIT: Literal["off"] = "off"


class JobRetention(Struct, frozen=True, forbid_unknown_fields=True):
    """Ended jobs with their logs: of each repository so many."""

    keep: Keep = "limits"
    age: Age = "30d"
    count: Many = 500
    bytes: Size = "10G"
    #: How long one stays in any case.
    grace: Age = "1h"


class EventRetention(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Keep = "limits"
    age: Age = "90d"
    count: Many = 1_000_000


class LogRetention(Struct, frozen=True, forbid_unknown_fields=True):
    """Output that belongs to no job."""

    keep: Keep = "limits"
    age: Age = "7d"


class ArtifactRetention(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Keep = "limits"
    age: Age = "30d"
    bytes: Size = "5G"


class WorktreeRetention(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Keep = "limits"
    #: Since the job ended that it was made for.
    age: Age = "1d"
    count: Many = NO_LIMIT
    bytes: Size = NO_LIMIT


class PreservedRetention(Struct, frozen=True, forbid_unknown_fields=True):
    """What was saved of removed worktrees."""

    keep: Keep = "limits"
    #: Since the worktree was removed.
    age: Age = "90d"
    count: Many = NO_LIMIT
    bytes: Size = NO_LIMIT
    #: Whether the only copy of work that was not merged may go as well.
    unmerged: bool = False


class TemporaryRetention(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Keep = "limits"
    age: Age = "15m"


class BackupRetention(Struct, frozen=True, forbid_unknown_fields=True):
    keep: Keep = "limits"
    age: Age = "90d"
    count: Many = 10


class RepositoryRetention(Struct, frozen=True, forbid_unknown_fields=True):
    """Folders of repositories that were removed."""

    keep: Keep = "limits"
    #: Since it was removed.
    age: Age = "7d"


class RetentionSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What the clean-up removes, one table a class of things."""

    keep: Keep = "limits"
    jobs: JobRetention = JobRetention()
    logs: LogRetention = LogRetention()
    events: EventRetention = EventRetention()
    artifacts: ArtifactRetention = ArtifactRetention()
    worktrees: WorktreeRetention = WorktreeRetention()
    preserved: PreservedRetention = PreservedRetention()
    temporary: TemporaryRetention = TemporaryRetention()
    backups: BackupRetention = BackupRetention()
    repositories: RepositoryRetention = RepositoryRetention()

    def policies(self) -> dict[CleanClass, Policy]:
        """The policy of each class.

        Raises:
            InvalidInput: naming the field.
        """
        return dict(self._policies())

    def rules(self) -> dict[str, Any]:
        """The policies as a clean-up is given them."""
        found: dict[str, Any] = {
            name: to_builtins(policy) for name, policy in self.policies().items()
        }
        found["preserved"]["unmerged"] = self.preserved.unmerged
        return found

    def _policies(self) -> Iterator[tuple[CleanClass, Policy]]:
        for name in DEFAULTS:
            table = getattr(self, name)
            policy = _policy(name, table)
            off = self.keep == "all" or table.keep == "all"
            yield name, OFF if off else policy


class DiskSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """How much is to be free on the disk of the home; `auto` goes by its size."""

    #: Below this people are warned; by itself 2 GiB, or a tenth of a smaller disk.
    warn_free: Size = "auto"
    #: Below this no new job is taken; by itself 512 MiB, or a twentieth.
    refuse_free: Size = "auto"

    def thresholds(self) -> Thresholds:
        """Both in bytes.

        Raises:
            InvalidInput: naming the field.
        """
        warn = _free(self.warn_free, "disk.warn_free")
        refuse = _free(self.refuse_free, "disk.refuse_free")
        if warn is not None and refuse is not None and 0 < warn < refuse:
            raise InvalidInput(
                "disk.warn_free", "must not be less than disk.refuse_free"
            )
        return Thresholds(warn, refuse)


def _policy(name: CleanClass, table: Struct) -> Policy:
    place = f"retention.{name}"
    default = DEFAULTS[name]
    age = _age(getattr(table, "age", NO_LIMIT), f"{place}.age")
    count: int | str = getattr(table, "count", NO_LIMIT)
    size = getattr(table, "bytes", NO_LIMIT)
    grace = _age(getattr(table, "grace", default.grace), f"{place}.grace") or 0.0
    return Policy(
        age=age,
        count=count if isinstance(count, int) else None,
        bytes=None if size == NO_LIMIT else parse_size(size, field=f"{place}.bytes"),
        # Who wants things to go sooner than that wants just this.
        grace=grace if age is None else min(grace, age),
    )


def _age(value: Age, field: str) -> float | None:
    return None if value == NO_LIMIT else parse_duration(value, field=field)


def _free(value: Size, field: str) -> int | None:
    return None if value == "auto" else parse_size(value, field=field)
