"""Settings of one repository, from the file `settings.toml` in our folder of it."""

from __future__ import annotations

from msgspec import Struct

from forge_actors.domain.branches import check_pattern
from forge_actors.domain.deadlines import parse_duration
from forge_actors.domain.errors import InvalidInput

#: Commands that a repository can have run in a new worktree.
MAX_SETUP = 32
#: Seconds they may take in all, by default, at least and at most.
SETUP_SECONDS, LEAST_SETUP, MOST_SETUP = 600.0, 1.0, 86_400.0


class WorktreeTable(Struct, frozen=True, forbid_unknown_fields=True):
    """What is done with each new worktree."""

    setup: list[str] = []
    setup_timeout: str | float = SETUP_SECONDS
    branch: str | None = None


class RepositorySettings(Struct, frozen=True, forbid_unknown_fields=True):
    """What a repository asks for in its own `settings.toml`."""

    worktree: WorktreeTable = WorktreeTable()

    def __post_init__(self) -> None:
        table = self.worktree
        if table.branch is not None:
            check_pattern(table.branch, field="worktree.branch")
        if not LEAST_SETUP <= self.setup_seconds <= MOST_SETUP:
            raise InvalidInput(
                "worktree.setup_timeout", f"{table.setup_timeout!r} is outside 1s to 1d"
            )
        if len(table.setup) > MAX_SETUP:
            raise InvalidInput("worktree.setup", f"are more than {MAX_SETUP} commands")
        for number, command in enumerate(table.setup):
            if not command.strip() or "\0" in command:
                raise InvalidInput(f"worktree.setup[{number}]", "is no command")

    @property
    def setup(self) -> tuple[str, ...]:
        return tuple(self.worktree.setup)

    @property
    def setup_seconds(self) -> float:
        return parse_duration(
            self.worktree.setup_timeout, field="worktree.setup_timeout"
        )
