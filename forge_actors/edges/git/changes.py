"""What a job changed in its repository: its commits, its files, and the diff of both.

What it left uncommitted counts too: the files of the worktree are written down beside
its index and its objects, which are as they were afterwards.
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from contextlib import contextmanager, suppress
from itertools import islice
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from forge_actors.domain.errors import NotFound, WorktreeFailed
from forge_actors.domain.results import (
    MAX_COMMITS,
    MAX_DIFF,
    MAX_FILES,
    MAX_SUBJECT,
    ChangedFile,
    Commit,
    JobResult,
)
from forge_actors.edges.git.entries import entry_of
from forge_actors.edges.git.program import git

if TYPE_CHECKING:
    from collections.abc import Iterator

    from forge_actors.domain.results import DiffForm
    from forge_actors.edges.git.program import Done

#: Seconds for one look of git at a worktree, and for a diff.
LOOK_SECONDS = 20.0
DIFF_SECONDS = 60.0
#: Bytes of git's list of changed files.
MAX_LIST = 8 * 1024 * 1024
#: What the user has set for diffs must not change what programs read.
_PLAIN = (
    *("--no-color", "--no-ext-diff", "--no-textconv", "--find-renames"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--submodule=short"),
    *("--ignore-submodules=none", "--no-relative", "--diff-algorithm=histogram"),
)
_FORMS: dict[DiffForm, tuple[str, ...]] = {
    "patch": ("--patch", "--binary", "--full-index"),
    "stat": ("--stat=100",),
    "names": ("--name-only",),
}
_RAW = re.compile(rb":[0-7]+ [0-7]+ [0-9a-f]+ [0-9a-f]+ ([A-Z])\d*$")
_COUNTS = re.compile(rb"(\d{1,18}|-)\t(\d{1,18}|-)\t(.*)$", re.DOTALL)


class Place(Struct, frozen=True):
    """Where the work of a job is."""

    job: str
    common_dir: str
    branch: str
    base: str
    #: Its worktree; None if that is not there any more.
    folder: str | None = None
    #: The commit that was its last one, if its branch is gone.
    last_known: str | None = None


async def result(place: Place) -> JobResult:
    """What the job did, as far as that is still known.

    Raises:
        Unavailable, WorktreeFailed: git cannot tell.
    """
    known = JobResult(place.branch, place.base)
    try:
        tip = await tip_of(place)
    except NotFound as gone:
        return structs.replace(known, note=str(gone))
    commits, count = await _commits(place, tip)
    known = structs.replace(known, head=tip, commits=commits, commit_count=count)
    with _scratch(place.common_dir) as beside:
        note = None
        tree, uncommitted = tip, None
        if place.folder is not None:
            try:
                tree = await _snapshot(place.folder, beside)
                uncommitted = await _differing(place, beside, tip, tree)
            except WorktreeFailed as problem:
                note = f"what is not committed was not looked at: {problem}"
        listed = ("diff", "--raw", "--numstat", "-z", *_PLAIN, place.base, tree)
        told = await _ask(place, *listed, beside=beside, limit=MAX_LIST)
    files, total = _files(told.out), _totals(told.out)
    if told.cut:
        note = f"git's list of the files is longer than {MAX_LIST} bytes"
    return structs.replace(
        known,
        files=tuple(files),
        file_count=total[0],
        added=total[1],
        deleted=total[2],
        uncommitted=uncommitted,
        note=note,
    )


async def diff(place: Place, form: DiffForm) -> bytes:
    """What the job changed, uncommitted files included; cut behind MAX_DIFF + 1 bytes.

    Raises:
        NotFound: its commits are gone. Unavailable, WorktreeFailed: git cannot tell.
    """
    tip = await tip_of(place)
    with _scratch(place.common_dir) as beside:
        if place.folder is not None:
            tip = await _snapshot(place.folder, beside)
        words = ("diff", *_FORMS[form], *_PLAIN, place.base, tip)
        told = await _ask(
            place, *words, beside=beside, limit=MAX_DIFF + 1, seconds=DIFF_SECONDS
        )
    return told.out


async def tree_of(folder: str) -> str:
    """What names all files below a folder that git does not ignore: the same as long
    as none of them changes.

    Raises:
        Unavailable, WorktreeFailed: git cannot tell.
    """
    found = await _look("rev-parse", "--git-common-dir", cwd=folder)
    if found.code != 0:
        raise WorktreeFailed(f"git rev-parse: {found.words}")
    with _scratch(os.path.join(folder, found.text)) as beside:
        return await _snapshot(folder, beside)


async def tip_of(place: Place) -> str:
    """The last commit of a job: of its worktree, its branch, or what was kept of it.

    Raises:
        NotFound: there is none of them.
    """
    if place.folder is not None:
        found = await _look("rev-parse", "--verify", "HEAD^{commit}", cwd=place.folder)
        if found.code == 0:
            return found.text
    kept = f"refs/forge-actors/kept/{place.job}"
    names = (
        f"refs/heads/{place.branch}",
        *(f"{kept}/{name}" for name in ("checkpoint", "head", "branch")),
        *([place.last_known] if place.last_known else []),
    )
    git_dir = f"--git-dir={place.common_dir}"
    for name in names:
        ask = ("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        found = await _look(git_dir, *ask)
        if found.code == 0:
            return found.text
    raise NotFound(
        f"the branch {place.branch} of job {place.job} is gone, and nothing was kept of"
        " it since it held nothing that other branches do not have"
    )


def folder_of(path: str, common_dir: str) -> str | None:
    """A worktree if it is still there and of this repository."""
    try:
        entry_of(path, common_dir)
    except WorktreeFailed:
        return None
    return path


@contextmanager
def _scratch(common_dir: str) -> Iterator[dict[str, str]]:
    """Variables by which git writes into a folder that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="forge-actors-") as folder:
        objects = os.path.join(folder, "objects")
        os.mkdir(objects)
        yield {
            "GIT_INDEX_FILE": os.path.join(folder, "index"),
            "GIT_OBJECT_DIRECTORY": objects,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": os.path.join(common_dir, "objects"),
        }


async def _snapshot(folder: str, beside: dict[str, str]) -> str:
    """The tree of all files of a worktree that git does not ignore.

    Raises:
        WorktreeFailed: one of them cannot be read.
    """
    found = await _look("rev-parse", "--absolute-git-dir", cwd=folder)
    # With what git knows of its files only those are read that have changed.
    with suppress(FileNotFoundError):
        shutil.copyfile(os.path.join(found.text, "index"), beside["GIT_INDEX_FILE"])
    for words in (("add", "--all", "--", ":/"), ("write-tree",)):
        done = await git(
            *words, seconds=LOOK_SECONDS, cwd=folder, environment=beside, mark=folder
        )
        if done.code != 0:
            raise WorktreeFailed(f"git {words[0]}: {done.words}")
    return done.text


async def _commits(place: Place, tip: str) -> tuple[tuple[Commit, ...], int]:
    span = f"{place.base}..{tip}"
    told = await _ask(place, "rev-list", "--count", span, "--")
    log = await _ask(
        place,
        *("log", f"--max-count={MAX_COMMITS}", "--format=%H %s", "--encoding=UTF-8"),
        *("--no-show-signature", "--no-color", span, "--"),
    )
    lines = log.out.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(" ") for line in lines)
    return tuple(Commit(i, text[:MAX_SUBJECT]) for i, _, text in pairs), int(told.text)


async def _differing(place: Place, beside: dict[str, str], tip: str, tree: str) -> int:
    """How many files a tree has otherwise than a commit."""
    words = ("diff-tree", "-r", "--name-only", "-z", "--no-renames", tip, tree)
    told = await _ask(place, *words, beside=beside, limit=MAX_LIST)
    return told.out.count(b"\0")


def _files(listed: bytes) -> Iterator[ChangedFile]:
    """The first files of `--raw --numstat -z`."""
    fields = iter(listed.split(b"\0"))
    found: dict[str, ChangedFile] = {}
    for field in fields:
        raw, counts = _RAW.match(field), _COUNTS.match(field)
        if raw is not None:
            status = raw[1].decode()
            before = next(fields, b"")
            path = next(fields, b"") if status in "RC" else before
            name = _text(path)
            renamed = _text(before) if path is not before else None
            if len(found) < MAX_FILES:
                found[name] = ChangedFile(name, status, renamed_from=renamed)
        elif counts is not None:
            # Nothing follows where a long answer was cut off.
            path = counts[3] or [b"", *islice(fields, 2)][-1]
            name = _text(path)
            if name in found:
                found[name] = structs.replace(
                    found[name], added=_number(counts[1]), deleted=_number(counts[2])
                )
    return iter(found.values())


def _totals(listed: bytes) -> tuple[int, int, int]:
    """Files, lines added, lines deleted. A path cannot be taken for a count: those of
    renamed files are skipped, the others stand behind their counts."""
    files = added = deleted = 0
    fields = iter(listed.split(b"\0"))
    for field in fields:
        if (raw := _RAW.match(field)) is not None:
            list(islice(fields, 2 if raw[1] in b"RC" else 1))
        elif (counts := _COUNTS.match(field)) is not None:
            files += 1
            added += _number(counts[1]) or 0
            deleted += _number(counts[2]) or 0
            if not counts[3]:
                list(islice(fields, 2))
    return files, added, deleted


def _number(field: bytes) -> int | None:
    return None if field == b"-" else int(field)


def _text(path: bytes) -> str:
    """A name that JSON can hold; bytes that are no text are escaped."""
    return path.decode("utf-8", "backslashreplace")


async def _ask(
    place: Place,
    *words: str,
    beside: dict[str, str] | None = None,
    limit: int = MAX_LIST,
    seconds: float = LOOK_SECONDS,
) -> Done:
    """What git says of the repository.

    Raises:
        WorktreeFailed: it cannot say, in its own words.
    """
    done = await git(
        f"--git-dir={place.common_dir}",
        *words,
        seconds=seconds,
        environment=beside,
        limit=limit,
    )
    if done.code != 0:
        raise WorktreeFailed(f"git {words[0]}: {done.words}")
    return done


async def _look(*words: str, cwd: str | None = None) -> Done:
    return await git(
        *words,
        seconds=LOOK_SECONDS,
        cwd=cwd,
        environment={"GIT_OPTIONAL_LOCKS": "0"},
    )
