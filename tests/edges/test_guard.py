"""The wrappers before git and gh: what they let through, and what they refuse."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from pathlib import Path

import pytest

from forge_actors.edges.guard.wrappers import Wrappers, environment, read_refused

HELD_BACK = 77
JOB = "0123456789abcdefghj"
#: Says which arguments it has, byte by byte, and takes its status from the first.
REAL = """\
#!/bin/sh
for word; do printf '%s\\0' "$word"; done >"$SEEN"
[ "$1" = status-7 ] && exit 7
[ "$1" = die ] && kill -TERM $$
exit 0
"""


class Ground:
    """A home with wrappers, and programs behind them in PATH."""

    def __init__(self, root: Path) -> None:
        self.home = root / "home"
        (self.home / "logs").mkdir(parents=True)
        self.bin = root / "bin"
        self.bin.mkdir()
        self.seen = root / "seen"
        self.wrappers = Wrappers(str(self.home / "guard"))

    def fake(self, name: str) -> None:
        program = self.bin / name
        program.write_text(REAL)
        program.chmod(0o700)

    def env(self, *may: str) -> dict[str, str]:
        path = f"{self.bin}:{os.environ['PATH']}"
        env = {
            "HOME": str(self.home),
            "SEEN": str(self.seen),
            "FORGE_JOB_ID": JOB,
            "FORGE_ATTEMPT": "2",
            "GIT_CONFIG_NOSYSTEM": "1",
        }
        for who in ("AUTHOR", "COMMITTER"):
            env |= {f"GIT_{who}_NAME": "a", f"GIT_{who}_EMAIL": "a@b"}
        folder = self.wrappers.folder(may)
        return env | environment(folder, env, path, may_push="push" in may)

    def run(
        self, *argv: str | bytes, may: tuple[str, ...] = (), cwd: Path | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        self.seen.unlink(missing_ok=True)
        env = self.env(*may)
        program = shutil.which(os.fsdecode(argv[0]), path=env["PATH"])
        assert program is not None
        return subprocess.run(
            [program, *argv[1:]], env=env, cwd=cwd, capture_output=True, check=False
        )

    def arguments(self) -> list[bytes]:
        return self.seen.read_bytes().split(b"\0")[:-1]

    def refused(self) -> list[tuple[str, str]]:
        return read_refused(str(self.home / "logs" / f"{JOB}.2"))


@pytest.fixture
def ground(tmp_path: Path) -> Ground:
    return Ground(tmp_path)


def test_arguments_status_and_signals_are_those_of_the_program(ground: Ground) -> None:
    ground.fake("git")
    odd = (b"commit", b"-m", b"a b\n'\"$(x)*", b"", b"\xff\xfe", b"-C")
    assert ground.run("git", *odd).returncode == 0
    assert ground.arguments() == list(odd)
    assert ground.run("git", "status-7").returncode == 7
    assert ground.run("git", "die").returncode == -15
    assert ground.refused() == []


@pytest.mark.parametrize(
    "words",
    [
        "push",
        "push origin main",
        "-C /tmp push --dry-run",
        "-c a.b=c -c push.default=simple push",
        "--git-dir=x --work-tree y push",
        "--no-pager -P push -f",
        "send-pack x",
        "lfs push origin",
        "subtree push --prefix=x origin main",
        "svn dcommit",
    ],
)
def test_a_push_is_refused_however_it_is_written(ground: Ground, words: str) -> None:
    ground.fake("git")
    done = ground.run("git", *words.split())
    assert done.returncode == HELD_BACK
    assert not ground.seen.exists()
    told = done.stderr.decode()
    assert f"no person began job {JOB}" in told
    assert f"forge-actors retry {JOB} --authorise push" in told
    assert [effect for effect, _ in ground.refused()] == ["push"]


@pytest.mark.parametrize(
    "words",
    ["pull", "fetch", "log --grep push", "commit -m push", "stash push", "-C push log"],
)
def test_what_only_speaks_of_a_push_is_let_through(ground: Ground, words: str) -> None:
    ground.fake("git")
    assert ground.run("git", *words.split()).returncode == 0
    assert [part.decode() for part in ground.arguments()] == words.split()


def test_what_was_allowed_is_let_through(ground: Ground) -> None:
    ground.fake("git")
    ground.fake("gh")
    assert ground.run("git", "push", may=("push",)).returncode == 0
    assert ground.arguments() == [b"push"]
    assert ground.run("gh", "pr", "merge", "5", may=("push",)).returncode == HELD_BACK
    assert ground.run("gh", "pr", "merge", "5", may=("merge",)).returncode == 0


GH_READS = [
    "",
    "pr list",
    "pr -R o/r view 5",
    "-R o/r pr diff 5",
    "issue view 5",
    "release download v1",
    "api repos/o/r",
    "api -X GET search/issues -f q=x",
    "api --method=get x",
    "api graphql -f query=query{viewer{login}}",
    "api -H Accept:x repos/o/r",
    "auth status",
    "run watch 5",
    "--version",
]
GH_CHANGES = {
    "pr merge 5": "merge",
    "-R o/r pr merge 5": "merge",
    "pr --repo o/r merge 5": "merge",
    "pr create --fill": "pull_request",
    "pr comment 5 -b list": "pull_request",
    "issue close 5": "issue",
    "release create v1": "release",
    "release delete v1": "release",
    "repo delete o/r": "remote",
    "repo sync": "remote",
    "workflow run x": "deploy",
    "api -X DELETE repos/o/r": "remote",
    "api -XDELETE repos/o/r": "remote",
    "api --method DELETE repos/o/r": "remote",
    "api repos/o/r/issues -f title=x": "remote",
    "api repos/o/r/issues -ftitle=x": "remote",
    "api repos/o/r --input x": "remote",
    "api graphql -f query=mutation{x}": "remote",
    "api graphql -F query=@file": "remote",
    "api -iXPOST x": "remote",
    "secret set X": "remote",
    "an-extension merge": "remote",
    "extension exec x": "remote",
}


@pytest.mark.parametrize("words", GH_READS)
def test_gh_may_read(ground: Ground, words: str) -> None:
    ground.fake("gh")
    done = ground.run("gh", *words.split())
    assert done.returncode == 0, done.stderr
    assert [part.decode() for part in ground.arguments()] == words.split()


@pytest.mark.parametrize("words", GH_CHANGES)
def test_gh_may_change_nothing(ground: Ground, words: str) -> None:
    ground.fake("gh")
    assert ground.run("gh", *words.split()).returncode == HELD_BACK
    assert not ground.seen.exists()
    assert [effect for effect, _ in ground.refused()] == [GH_CHANGES[words]]
    assert ground.run("gh", *words.split(), may=(GH_CHANGES[words],)).returncode == 0


def test_no_value_of_an_argument_is_written_down(ground: Ground) -> None:
    ground.fake("gh")
    ground.fake("git")
    ground.run("gh", "secret", "set", "X", "--body", "hunter2-hunter2")
    ground.run("gh", "HUNTER2", "x")
    ground.run("gh", "pr", "--title", "hunter2", "create")
    ground.run("git", "push", "https://u:hunter2-hunter2@host/x")
    told = (ground.home / "logs" / f"{JOB}.2.effects").read_text()
    assert "hunter2" not in told.lower()
    assert len(ground.refused()) == 4


def test_what_is_written_down_is_bounded_and_private(ground: Ground) -> None:
    ground.fake("git")
    log = ground.home / "logs" / f"{JOB}.2.effects"
    ground.run("git", "push")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    for each in (ground.home / "guard", *(ground.home / "guard").rglob("*")):
        assert stat.S_IMODE(each.stat().st_mode) == 0o700, each
    log.write_bytes(b"x" * 20_000)
    assert ground.run("git", "push").returncode == HELD_BACK
    assert log.stat().st_size == 20_000


@pytest.mark.parametrize("job", ["", "../../x", "a\nb", "A B"])
def test_a_job_that_names_itself_otherwise_is_refused_too(
    ground: Ground, job: str
) -> None:
    ground.fake("git")
    env = ground.env() | {"FORGE_JOB_ID": job}
    program = shutil.which("git", path=env["PATH"])
    assert program is not None
    done = subprocess.run([program, "push"], env=env, capture_output=True, check=False)
    assert done.returncode == HELD_BACK
    assert list((ground.home / "logs").iterdir()) == []


def test_wrappers_before_wrappers_come_to_the_program(ground: Ground) -> None:
    # As where a service runs within a job of another one.
    ground.fake("git")
    inner = Wrappers(str(ground.home.parent / "other" / "guard")).folder(())
    env = ground.env("push")
    env["PATH"] = env["PATH"].replace(":", f":{inner}:", 1)
    done = subprocess.run(
        ["git", "status"], env=env, capture_output=True, check=False, timeout=60
    )
    assert (done.returncode, ground.arguments()) == (0, [b"status"])
    done = subprocess.run(
        ["git", "push"], env=env, capture_output=True, check=False, timeout=60
    )
    assert done.returncode == HELD_BACK


def test_those_of_another_job_of_the_home_are_left_out(ground: Ground) -> None:
    folder, others = ground.wrappers.folder(["push"]), ground.wrappers.folder(())
    path = f"{others}:/a:{folder}:/b"
    added = environment(folder, {"PATH": path}, "/c", may_push=True)
    assert added == {"PATH": f"{folder}:/a:/b"}


def test_without_the_program_it_says_so(ground: Ground) -> None:
    env = ground.env() | {"PATH": f"{ground.wrappers.folder(())}:/usr/bin:/bin"}
    gh = shutil.which("gh", path=env["PATH"])
    assert gh is not None
    done = subprocess.run([gh, "pr", "list"], env=env, capture_output=True, check=False)
    assert done.returncode == 127
    assert done.stderr == b"gh: not found\n"


def test_programs_are_put_right_again_by_the_next_runtime(ground: Ground) -> None:
    folder = Path(ground.wrappers.folder(()))
    (folder / "git").write_text("#!/bin/sh\nexit 0\n")
    again = Path(Wrappers(str(ground.home / "guard")).folder(()))
    assert again == folder
    assert "held back" in (folder / "git").read_text()
    assert sorted(each.name for each in folder.iterdir()) == [
        "gh",
        "git",
        "git-remote-forge-held-back",
    ]


# -- with the real git -------------------------------------------------------------


@pytest.fixture
def clone(ground: Ground) -> Path:
    """A clone with a commit that its origin does not have."""
    origin = ground.bin.parent / "origin.git"
    work = ground.bin.parent / "work"
    for argv in (
        ("init", "-q", "--bare", "-b", "main", str(origin)),
        ("clone", "-q", str(origin), str(work)),
    ):
        assert ground.run("git", *argv).returncode == 0
    assert (
        ground.run(
            "git", "commit", "-q", "--allow-empty", "-m", "x", cwd=work
        ).returncode
        == 0
    )
    return work


def heads(ground: Ground, clone: Path) -> bytes:
    return ground.run("git", "ls-remote", "origin", cwd=clone).stdout


@pytest.mark.parametrize(
    "argv",
    [
        ("git", "push", "origin", "HEAD:main"),
        ("git", "-c", "alias.p=push origin HEAD:main", "p"),
        ("git", "-c", "alias.q=p", "-c", "alias.p=push origin HEAD:main", "q"),
        ("git", "-c", "alias.p=!git push origin HEAD:main", "p"),
        ("git", "-c", "alias.p=!g=pu; git ${g}sh origin HEAD:main", "p"),
        ("git", "submodule", "--quiet", "foreach", "true"),
        ("sh", "-c", "exec $(git --exec-path)/git push origin HEAD:main"),
        ("sh", "-c", "git rebase --root --exec 'git push origin HEAD:main'"),
        ("sh", "-c", "PATH=/usr/local/bin:/usr/bin:/bin; git push origin HEAD:main"),
        ("sh", "-c", "git push $(git remote get-url origin) HEAD:main"),
    ],
)
def test_the_real_git_pushes_nothing(
    ground: Ground, clone: Path, argv: tuple[str, ...]
) -> None:
    done = ground.run(*argv, cwd=clone)
    assert (done.returncode != 0) == (argv[1] != "submodule"), done.stderr
    assert heads(ground, clone) == b""


def test_the_real_git_pushes_if_it_may(ground: Ground, clone: Path) -> None:
    done = ground.run("git", "push", "origin", "HEAD:main", may=("push",), cwd=clone)
    assert done.returncode == 0, done.stderr
    assert heads(ground, clone).endswith(b"refs/heads/main\n")


def test_git_by_its_full_path_says_why(ground: Ground, clone: Path) -> None:
    done = ground.run("sh", "-c", "$(git --exec-path)/git push origin", cwd=clone)
    assert b"is held back" in done.stderr
    assert ground.refused() == [("push", "git push")]


def test_worktrees_hooks_and_submodules_work(ground: Ground, clone: Path) -> None:
    hook = clone / ".git" / "hooks" / "pre-commit"
    hook.write_text("#!/bin/sh\ngit rev-parse HEAD >hooked\n")
    hook.chmod(0o700)
    tree = clone.parent / "tree"
    for where, argv in (
        (clone, ("worktree", "add", "-q", str(tree), "-b", "b")),
        (tree, ("commit", "-q", "--allow-empty", "-m", "y")),
        (tree, ("fetch", "-q", "origin")),
        (clone, ("-c", "alias.st=status --short", "st")),
    ):
        done = ground.run("git", *argv, cwd=where)
        assert done.returncode == 0, (argv, done.stderr)
    assert (tree / "hooked").exists()
    own = ("-c", "protocol.file.allow=always", "submodule", "--quiet", "add")
    done = ground.run("git", *own, str(clone.parent / "origin.git"), "sub", cwd=clone)
    assert b"is held back" not in done.stderr
