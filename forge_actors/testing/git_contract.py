"""What `Git` keeps of where a repository is, as checks to run against one.

Call each of `CHECKS` with it, with a folder that is a repository and one that is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from forge_actors.domain.ports import Git

    Check = Callable[[Git, Path, Path], Awaitable[None]]

ONE, TWO = "1" * 19, "2" * 19


async def check_a_folder_below_is_of_the_same_repository(
    git: Git, repo: Path, other: Path
) -> None:
    below = repo / "a/b"
    below.mkdir(parents=True)
    seen = await git.checkout(str(below))
    assert seen == await git.checkout(str(repo))
    assert (seen.root, seen.common_dir) == (str(repo), str(repo / ".git"))
    assert seen.main


async def check_a_link_leads_to_the_repository(
    git: Git, repo: Path, other: Path
) -> None:
    link = other / "link"
    link.symlink_to(repo)
    assert (await git.checkout(str(link))).root == str(repo)


async def check_what_is_none_is_refused(git: Git, repo: Path, other: Path) -> None:
    file = other / "file"
    file.write_text("")
    for path in (other, file, other / "gone"):
        try:
            await git.checkout(str(path))
        except InvalidInput as error:
            assert error.field == "path"  # noqa: PT017 - a check, not a test
        else:
            raise AssertionError(f"{path} is taken for a repository")


async def check_an_id_is_found_again(git: Git, repo: Path, other: Path) -> None:
    seen = await git.checkout(str(repo))
    before = git.identity(seen.common_dir)
    assert before is not None
    assert (before.device, before.inode, before.ids) == (seen.device, seen.inode, ())
    git.add_id(seen.common_dir, ONE)
    git.add_id(seen.common_dir, TWO)
    after = git.identity(seen.common_dir)
    assert after is not None
    assert after.ids == (TWO, ONE)
    assert git.identity(str(other / ".git")) is None


async def check_one_that_was_moved_beside_is_found(
    git: Git, repo: Path, other: Path
) -> None:
    old = (await git.checkout(str(repo))).common_dir
    git.add_id(old, ONE)
    repo.rename(repo.with_name("elsewhere"))
    [(where, identity)] = git.seek(old, ONE)
    assert where == str(repo.with_name("elsewhere") / ".git")
    assert identity.ids == (ONE,)


CHECKS: tuple[Check, ...] = (
    check_a_folder_below_is_of_the_same_repository,
    check_a_link_leads_to_the_repository,
    check_what_is_none_is_refused,
    check_an_id_is_found_again,
    check_one_that_was_moved_beside_is_found,
)
