"""The job file of `run`: its repositories, its jobs, its limits."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, field

from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.repositories import check_name
from forge_actors.domain.requests import JobRequest


class FileRepository(Struct, frozen=True, forbid_unknown_fields=True):
    """A repository to use where it is (`path`), or to clone first (`clone`)."""

    name: str
    path: str | None = None
    clone: str | None = None


class JobFile(Struct, frozen=True, forbid_unknown_fields=True):
    """A decoded job file. `limits`, `pressure` and `providers` are settings."""

    repository: list[FileRepository]
    job: list[JobRequest]
    limits: dict[str, Any] = field(default_factory=dict)
    pressure: dict[str, Any] = field(default_factory=dict)
    providers: dict[str, Any] = field(default_factory=dict)
    scheduling: dict[str, Any] = field(default_factory=dict)
    output: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> dict[str, Any]:
        """The tables that are settings, as `settings.toml` has them."""
        return {
            "limits": self.limits,
            "pressure": self.pressure,
            "providers": self.providers,
            "scheduling": self.scheduling,
            "output": self.output,
        }


def check(file: JobFile) -> None:
    """What a decoded file must keep to besides its types.

    Raises:
        InvalidInput: naming the table and the field.
    """
    if not file.job:
        raise InvalidInput("job", "there is no [[job]] to run")
    names: set[str] = set()
    for index, repository in enumerate(file.repository):
        where = f"repository[{index}]"
        check_name(repository.name, field=f"{where}.name")
        if repository.name in names:
            raise InvalidInput(f"{where}.name", f"{repository.name!r} is there twice")
        names.add(repository.name)
        if (repository.path is None) == (repository.clone is None):
            raise InvalidInput(where, "has either a path or a clone")
    for index, job in enumerate(file.job):
        if job.repo not in names:
            raise InvalidInput(
                f"job[{index}].repo",
                f"{job.repo!r} is no [[repository]] of this file",
                allowed=tuple(sorted(names)),
            )
