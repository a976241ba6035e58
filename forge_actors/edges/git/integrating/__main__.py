"""Start of the program: `python -I -S <this file> JSON`.

The JSON has `job`, `checkout`, `branch`, `tip`, `mode`, `date`, `dry_run`, and where
the job's worktree is still there `worktree`, with `commit_first` if what is uncommitted
in it is to be committed. It prints what it came to as JSON. Exit status 0: it is done;
3: it is refused, nothing was changed, and `refused` says why.
"""

from __future__ import annotations

import json
import os
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from forge_actors.edges.git.integrating.merging import Maker

REFUSED = 3
#: The line by which a checkpoint of a removed worktree is known.
TRAILER = "Forge-Actors-Checkpoint"


def main() -> int:
    """See the module."""
    from forge_actors.edges.git.integrating.git import Refusal

    try:
        done = apply(json.loads(sys.argv[1]))
    except Refusal as refusal:
        print(json.dumps({"refused": str(refusal)}))
        return REFUSED
    print(json.dumps(done))
    return 0


def apply(told: dict[str, Any]) -> dict[str, Any]:
    """Do it, or with `dry_run` only look whether it can be done.

    Raises:
        Refusal: it cannot.
    """
    from forge_actors.edges.git.integrating.checkout import Checkout
    from forge_actors.edges.git.integrating.git import Refusal
    from forge_actors.edges.git.integrating.merging import Maker

    checkout = Checkout(told["checkout"], mine=not told["dry_run"])
    if checkout.is_half_done:
        return {"how": "later"}
    git = checkout.git
    job, branch = told["job"], told["branch"]
    message = f"Merge branch '{branch}' of job {job}\n"
    maker = Maker(git, told["date"], message)
    tip: str = told["tip"]
    if told.get("worktree"):
        found = _from_worktree(told)
        if found is None:  # what is to be applied is not there before it is done
            return {"how": "later"}
        tip = found
    else:
        tip = _from_branch(told, maker)
    if tip == told["base"]:
        raise Refusal(f"job {job} has made no commit and left nothing to commit")
    if checkout.branch == branch:
        raise Refusal(f"{git.folder} is on {branch} itself, the branch of the job")
    made = maker.make(checkout.head, tip, told["mode"])
    count = int(git.run("rev-list", "--count", f"{checkout.head}..{tip}"))
    if made.how != "nothing" and not told["dry_run"]:
        checkout.move(made.commit, f"forge-actors apply {job}")
    return {
        "how": made.how,
        "commit": made.commit,
        "into": checkout.branch,
        "commits": count,
        "put_back": checkout.put_back,
    }


def _from_worktree(told: dict[str, Any]) -> str | None:
    """The commit that a worktree is at, once what was uncommitted in it is in that;
    None if that is still to be done."""
    from forge_actors.edges.git.integrating.git import Git, Refusal

    git = Git(told["worktree"])
    ref = git.finish("symbolic-ref", "--quiet", "HEAD")[1].decode()
    if ref != f"refs/heads/{told['branch']}":
        at = ref.removeprefix("refs/heads/") or "no branch"
        raise Refusal(
            f"the worktree {git.folder} is at {at}, not at {told['branch']}: merge what"
            " you want of it yourself"
        )
    changed = git.run("status", "--porcelain", "-z", "--no-renames")
    count = changed.count("\0")
    if count and not told["commit_first"]:
        raise Refusal(
            f"{count} files are not committed in {git.folder}: commit them there, or"
            " let --commit-first do it"
        )
    if git.run("ls-files", "--unmerged", "-z"):
        raise Refusal(f"a conflict is not resolved in {git.folder}")
    if count and told["dry_run"]:
        return None
    if count:
        git.run("add", "--all", "--", ":/")
        git.run(
            *("commit", "--quiet", "--no-verify", "--no-gpg-sign", "-m"),
            f"What job {told['job']} left uncommitted",
            environment=git.identity(),
        )
    return git.run("rev-parse", "--verify", "HEAD")


def _from_branch(told: dict[str, Any], maker: Maker) -> str:
    """The last commit of a worktree that is gone. What was uncommitted in that is in a
    checkpoint, which is no commit that anybody meant to make."""
    from forge_actors.edges.git.integrating.git import Git, Refusal

    git = Git(told["checkout"])
    tip: str = told["tip"]
    lines = git.run("show", "-s", "--no-show-signature", "--format=%B", tip)
    if f"{TRAILER}: {told['job']}" not in lines.splitlines():
        return tip
    if not told["commit_first"]:
        raise Refusal(
            f"its worktree was removed with files that were not committed; they are in"
            f" the checkpoint {tip[:12]}, which --commit-first makes a commit of"
        )
    return maker.plain(tip, f"What job {told['job']} left uncommitted\n")


if __name__ == "__main__":
    root = os.path.abspath(__file__)
    for _ in range(5):
        root = os.path.dirname(root)
    sys.path.insert(0, root)
    sys.exit(main())
