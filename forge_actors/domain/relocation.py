"""Relocation: a repository's folder is another one now, and what was below it too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, structs

if TYPE_CHECKING:
    from forge_actors.domain.claims import Claim
    from forge_actors.domain.jobs import JobSpec

#: How a repository's own folder is called in its first work tree.
GIT = ".git"


class Relocation(Struct, frozen=True):
    """From where to where a folder was moved. Both are absolute, links resolved."""

    old: str
    new: str

    def path(self, path: str) -> str:
        """Where that is now; unchanged if it was not below the folder."""
        if path == self.old:
            return self.new
        if not path.startswith(f"{self.old}/"):
            return path
        return self.new + path.removeprefix(self.old)

    def claims(self, claims: tuple[Claim, ...]) -> tuple[Claim, ...]:
        """The claims of a job, with the checkouts where they are now."""
        moved = (
            structs.replace(claim, checkout=self.path(claim.checkout))
            for claim in claims
        )
        return tuple(sorted(moved))

    def spec(self, spec: JobSpec) -> JobSpec:
        """What a job is started with, from there."""
        stdin, isolation = spec.stdin, spec.isolation
        if isolation is not None and isolation.claims is not None:
            claims = self.claims(isolation.claims)
            isolation = structs.replace(isolation, claims=claims)
        return structs.replace(
            spec,
            cwd=self.path(spec.cwd),
            stdin=None if stdin is None else self.path(stdin),
            isolation=isolation,
        )


def work_folder(common_dir: str) -> str | None:
    """The first work tree around a git common directory, if it is in one."""
    folder, _, name = common_dir.rpartition("/")
    return folder if name == GIT and folder else None


def relocation(
    old_common: str, new_common: str, old_path: str, new_path: str
) -> Relocation | None:
    """What moved with a repository whose common directory and work tree were there.

    A repository beside its work tree, such as a submodule's, says nothing of where that
    was: then it is the work tree itself.
    """
    old, new = work_folder(old_common), work_folder(new_common)
    if old is None or new is None:
        old, new = old_path, new_path
    return None if old == new else Relocation(old, new)
