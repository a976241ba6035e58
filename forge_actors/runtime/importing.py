"""Taking over a home that was exported elsewhere: checked whole before it is one here.

Nothing of the other machine is alive here. So its repositories are where somebody says
they are, or disabled; and what ran there counts as interrupted, whatever became of it.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from forge_actors.domain.errors import InvalidInput, NotFound, Refused
from forge_actors.domain.forge_files import MAX_FILE_BYTES
from forge_actors.domain.launch import Receipt
from forge_actors.domain.templates import TEMPLATES_FILE
from forge_actors.edges.archive import Member, unpack
from forge_actors.edges.git.checkout import GitProgram
from forge_actors.edges.sqlite.checking import move
from forge_actors.edges.sqlite.connection import opened_alone
from forge_actors.edges.sqlite.copying import Contents, contents_of, copy_store
from forge_actors.edges.sqlite.moving import Moved, move_repositories, set_free
from forge_actors.edges.sqlite.retelling import retell
from forge_actors.runtime.export import (
    FORMAT,
    FORMAT_VERSION,
    LOG_NAME,
    MANIFEST,
    PROMPT_NAME,
)
from forge_actors.runtime.homes import (
    LOGS,
    PROMPTS,
    RECEIPTS,
    SHARED_IDS,
    STORE_FILE,
    refuse_shared,
)
from forge_actors.runtime.ownership import own_home, prepare_home
from forge_actors.runtime.prompts import MAX_PROMPT
from forge_actors.runtime.sources import MAX_FILE, SETTINGS_FILE, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from forge_actors.domain.repositories import Checkout

#: The folder in the new home where everything is checked.
WORK = "importing"
#: Bytes of the files of an archive, by what they are.
MAX_MANIFEST = 64 << 20
MAX_STORE = 1 << 40
MAX_LOG = 1 << 36
#: Receipts of attempts whose home was left, in the form of a node agent's.
LEFT_BEHIND = "0-imported.jsonl"


class Imported(NamedTuple):
    contents: Contents
    #: By name: repositories that are disabled, and why.
    disabled: dict[str, str]
    #: Jobs that ran when the home was exported.
    interrupted: int
    secrets: list[str]


async def import_home(
    home: Path, file: Path, places: Mapping[str, str], git: GitProgram, now: float
) -> Imported:
    """Make a new home of an export; `places` are paths here by names of repositories.

    Raises:
        Refused: the home is not empty.
        InvalidInput: the file is no export, or a path is no git work tree.
        NotFound: `places` names a repository that is not in it.
        ForgeError: the store in it cannot be used, or the settings here.
    """
    _check_empty(home)
    refuse_shared(home)
    home = prepare_home(home)
    with own_home(home):
        try:
            return await _import(home, file, places, git, now)
        except BaseException:
            for entry in home.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            raise


async def import_here(
    home: Path, file: Path, places: Mapping[str, str], now: float
) -> Imported:
    """`import_home` with the git of this machine."""
    return await import_home(home, file, places, GitProgram(), now)


def _check_empty(home: Path) -> None:
    try:
        found = sorted(entry.name for entry in home.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        raise InvalidInput("home", f"{home} is no folder") from None
    if found:
        raise Refused(
            f"{home} is not empty ({found[0]}); import makes a new home, and the store"
            " of one that is there is replaced by restore"
        )


async def _import(
    home: Path, file: Path, places: Mapping[str, str], git: GitProgram, now: float
) -> Imported:
    work = home / WORK
    (work / LOGS).mkdir(mode=0o700, parents=True)
    (work / PROMPTS).mkdir(mode=0o700)
    members = unpack(file, work, _limit_of)
    secrets = _check_manifest(work, members)
    _check_prompts(members)
    if SETTINGS_FILE in members:
        load(work / SETTINGS_FILE)
    store = work / f"checked-{STORE_FILE}"
    copy_store(work / STORE_FILE, store)
    with opened_alone(store) as db:
        rows = db.execute(
            "SELECT id, name, path FROM repository WHERE removed_at IS NULL"
        ).fetchall()
        known = {str(name): (str(repo), str(path)) for repo, name, path in rows}
        moved = await _find(known, places, git)
        db.execute("BEGIN IMMEDIATE")
        move_repositories(db, moved)
        left = set_free(db)
        told: dict[str, object] = {"how": "import", "interrupted": len(left)}
        reasons = {p.repo: p.problem for p in moved if p.problem is not None}
        retell(db, now, told, disabled=reasons)
        db.execute("COMMIT")
        contents = contents_of(db, store)
    lines = [
        msgspec.json.encode(Receipt(job, attempt, fence, "lost", now))
        for job, attempt, fence in left
    ]
    if lines:
        (home / RECEIPTS / LEFT_BEHIND).write_bytes(b"\n".join(lines) + b"\n")
    _mark(home, moved, git)
    (home / LOGS).rmdir()
    (work / LOGS).rename(home / LOGS)
    if any((work / PROMPTS).iterdir()):
        (work / PROMPTS).rename(home / PROMPTS)
    for name in (SETTINGS_FILE, TEMPLATES_FILE):
        if name in members:
            (work / name).rename(home / name)
    # Last: without a store nothing is a home yet.
    move(store, home / STORE_FILE)
    shutil.rmtree(work)
    names = {repo: name for name, (repo, _) in known.items()}
    disabled = {names[repo]: problem for repo, problem in reasons.items()}
    return Imported(contents, disabled, len(left), secrets)


def _mark(home: Path, moved: list[Moved], git: GitProgram) -> None:
    """Write each id into its repository, and note those that were there already."""
    shared: list[str] = []
    for repo, checkout, _ in moved:
        if checkout is None:
            continue
        identity = git.identity(checkout.common_dir)
        if identity is not None and repo in identity.ids:
            shared.append(f"{repo}\n")
        git.add_id(checkout.common_dir, repo)
    if shared:
        (home / SHARED_IDS).write_text("".join(shared), "ascii")


def _limit_of(name: str) -> int | None:
    folder, _, log = name.rpartition("/")
    if folder == LOGS:
        return MAX_LOG if LOG_NAME.fullmatch(log) else None
    if folder == PROMPTS:
        return MAX_PROMPT if PROMPT_NAME.fullmatch(log) else None
    known = {
        STORE_FILE: MAX_STORE,
        SETTINGS_FILE: MAX_FILE,
        TEMPLATES_FILE: MAX_FILE_BYTES,
        MANIFEST: MAX_MANIFEST,
    }
    return known.get(name)


def _check_prompts(members: Mapping[str, Member]) -> None:
    """No job is to do anything else than it was asked."""
    for name, member in members.items():
        folder, _, digest = name.rpartition("/")
        if folder == PROMPTS and member.sha256 != digest:
            raise InvalidInput("file", f"{name} is not what its name says")


def _check_manifest(work: Path, members: Mapping[str, Member]) -> list[str]:
    """The names of the secrets, if everything is as the manifest says."""
    if MANIFEST not in members or STORE_FILE not in members:
        raise InvalidInput("file", "this is no export of a home, or it is cut off")
    try:
        told = json.loads((work / MANIFEST).read_bytes())
        version, kind = told["version"], told["format"]
        secrets = [str(name)[:64] for name in told["secrets"]]
        files = {
            name: Member(entry["size"], entry["sha256"])
            for name, entry in told["files"].items()
        }
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise InvalidInput("file", f"its {MANIFEST} makes no sense") from None
    if kind != FORMAT or version != FORMAT_VERSION:
        problem = f"it is of version {version}, this release reads {FORMAT_VERSION}"
        raise InvalidInput("file", problem)
    there = {name: member for name, member in members.items() if name != MANIFEST}
    if there != files:
        wrong = sorted(
            name for name in {*there, *files} if there.get(name) != files.get(name)
        )
        raise InvalidInput("file", f"{wrong[0][:100]} is not what it was exported as")
    return secrets


async def _find(
    known: Mapping[str, tuple[str, str]], places: Mapping[str, str], git: GitProgram
) -> list[Moved]:
    """Where each repository is here, or why it is disabled."""
    for name in places:
        if name not in known:
            raise NotFound(f"repo: the export has no repository {name!r}")
    found: list[Moved] = []
    for name, (repo, path) in known.items():
        wanted = places.get(name)
        checkout: Checkout | None = None
        problem: str | None = None
        try:
            checkout = await git.checkout(wanted or path)
        except InvalidInput as error:
            if wanted is not None:
                raise
            problem = f"{error.problem} on this machine"
        if checkout is not None and wanted is None:
            identity = git.identity(checkout.common_dir)
            if identity is None or repo not in identity.ids:
                checkout, problem = None, f"{path} is another repository here"
        found.append(Moved(repo, checkout, problem))
    taken: dict[tuple[int, int], Moved] = {}
    for moved in found:
        if moved.checkout is not None:
            key = (moved.checkout.device, moved.checkout.inode)
            if key in taken:
                raise InvalidInput("repo", f"{moved.checkout.root} is given twice")
            taken[key] = moved
    return found
