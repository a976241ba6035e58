"""`repo trust`, `template` and `submit --template` in front of a service."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from forge_actors.cli.trust_text import MAX_COMPARED, shown
from forge_actors.domain.templates import Parameter, TemplateView
from forge_actors.domain.trust import (
    BroughtWorkflow,
    PlannedSchedule,
    TrustedFile,
    TrustView,
)
from forge_actors.testing.service import fake_service

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.shell import Shell

DIGEST = "3f" * 32
VIEW = TrustView(
    repo="app",
    path="/srv/app",
    state="untrusted",
    problem=None,
    digest=DIGEST,
    trusted=None,
    trusted_at=None,
    authorised=[],
    files=[TrustedFile("a.toml", "new", "aa" * 32, "one\ntwo\n", None)],
    templates=[],
    schedules=[PlannedSchedule("app.s", "added", "@daily", {"argv": ["a", "b c"]})],
    workflows=[BroughtWorkflow("ship", "a.toml")],
    secrets=[],
    effects=["push"],
)
TEMPLATE = TemplateView(
    name="test",
    repo="app",
    description="Run the tests",
    parameters={"part": Parameter(default="all"), "n": Parameter(type="integer")},
    job={"argv": ["make", "${part}"], "prompt": "first\nsecond", "cwd": "src"},
    authorised=["push"],
)


async def test_it_is_shown_and_taken_over_by_its_digest(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        control.brought["app"] = VIEW
        status, out, err = await shell("repo", "trust", "app")
        assert (status, control.brought["app"].state) == (3, "untrusted")
        for told in (
            "app  /srv/app  not trusted",
            f"  .forge/a.toml  new  sha256 {'aa' * 32}",
            "schedule app.s  added",
            "  command    a 'b c'",
            "workflow ship  .forge/a.toml",
            "  | two",
            "to the outside: push",
            "+one",
        ):
            assert told in out
        assert f"--digest {DIGEST[:16]} takes over exactly this" in err
        assert (await shell("repo", "trust", "app", "--show"))[0] == 0
        status, _, err = await shell("repo", "trust", "app", "--digest", "3f3f")
        assert (status, "at least 8" in err) == (2, True)
        status, _, err = await shell("repo", "trust", "app", "--digest", "00000000")
        assert (status, f"its digest is {DIGEST}" in err) == (2, True)
        words = ("--digest", DIGEST[:8], "--authorise", "push")
        status, _, err = await shell("repo", "trust", "app", *words)
        assert (status, control.brought["app"].state) == (0, "trusted")
        assert control.brought["app"].authorised == ["push"]
        status, _, err = await shell("repo", "trust", "app", "--yes")
        assert (status, "is trusted as it is" in err) == (0, True)
        status, out, _ = await shell("repo", "trust", "app", "--remove", "--json")
        assert (status, json.loads(out)["state"]) == (0, "untrusted")


@pytest.mark.parametrize(("said", "state"), [("y\n", "trusted"), ("\n", "untrusted")])
async def test_somebody_at_a_terminal_is_asked(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, said: str, state: str
) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

        def readline(self) -> str:
            return said

    monkeypatch.setattr(sys, "stdin", Terminal())
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    async with fake_service(tmp_path) as control:
        control.brought["app"] = VIEW
        _, out, _ = await shell("repo", "trust", "app")
        assert "Trust this of app? [y/N]" in out
        assert control.brought["app"].state == state


async def test_a_secret_has_to_be_named(tmp_path: Path, shell: Shell) -> None:
    async with fake_service(tmp_path) as control:
        control.brought["app"] = structs.replace(VIEW, secrets=["TOKEN"])
        status, out, err = await shell("repo", "trust", "app", "--yes")
        assert (status, "--secret TOKEN" in err) == (3, True)
        assert "its jobs get the secrets: TOKEN" in out
        done = await shell("repo", "trust", "app", "--yes", "--secret", "TOKEN")
        assert done[0] == 0


def _told(**changes: Any) -> list[str]:
    from msgspec import to_builtins

    return list(shown(to_builtins(structs.replace(VIEW, **changes))))


def test_what_changed_is_told_as_a_diff() -> None:
    before, after = "one\ntwo\nthree\n", "one\n2\nthree\n"
    lines = _told(files=[TrustedFile("a.toml", "changed", "bb", after, before)])
    assert lines[-4:] == [" one", "-two", "+2", " three"]
    long = "x\n" * (MAX_COMPARED // 1000)
    lines = _told(files=[TrustedFile("a.toml", "changed", "bb", long + "y", long)])
    assert lines.count("-x") == lines.count("+x") == MAX_COMPARED // 1000
    lines = _told(files=[TrustedFile("a.toml", "gone", None, None, "one\n")])
    assert lines[-1] == "-one"
    assert _told(files=[TrustedFile("a.toml", "same", "b", "x", "x")])[-1] != "+x"


def test_nothing_in_it_reaches_the_terminal_as_it_is() -> None:
    evil = "a\x1b[2J\x07\u202eb\rc"
    lines = _told(
        files=[TrustedFile("a.toml", "new", "aa", evil, None)],
        schedules=[PlannedSchedule(evil, "added", evil, {"argv": [evil], evil: evil})],
        templates=[
            structs.replace(TEMPLATE, description=evil, job={"argv": [evil], "x": evil})
        ],
        problem=evil,
    )
    assert all(line.isprintable() for line in lines)
    # What a terminal would swallow is there to be seen.
    hidden = "echo ok\x1b]0;; rm -rf ~ ;\x07\nreboot\u200b"
    [told] = [
        line
        for line in _told(
            schedules=[
                PlannedSchedule("s", "added", "@daily", {"argv": ["sh", "-c", hidden]})
            ]
        )
        if "command" in line
    ]
    assert told.endswith(r"'echo ok\x1b]0;; rm -rf ~ ;\x07\nreboot\u200b'")
    # All of a command is shown, however long it is.
    long = "x" * 5000
    assert long in "\n".join(
        _told(
            schedules=[
                PlannedSchedule("s", "added", "@daily", {"argv": ["sh", "-c", long]})
            ]
        )
    )


async def test_templates_are_listed_shown_and_submitted(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        assert (await shell("template", "list"))[2].startswith(
            "forge-actors: there are"
        )
        control.kept_templates = [TEMPLATE]
        _, out, _ = await shell("template", "list")
        assert out.splitlines()[1].split("  ")[0] == "test"
        assert "part n!" in out
        _, out, _ = await shell("template", "show", "test", "--repo", "app")
        assert out.splitlines() == [
            "template test  of app: Run the tests",
            '  --set part  = "all"',
            "  --set n  has to be given  integer",
            "  command    make '${part}'",
            "  prompt     first",
            "             second",
            "  cwd        src",
            "  authorised push",
        ]
        words = ("submit", "--template", "test", "--repo", "app", "--set", "part=a=b")
        say = ("--priority", "P1", "--label", "x", "--request-id", "r", "--name", "n")
        assert await shell(*words, *say) == (0, "job1\n", "")
        [(name, wanted)] = control.by_template
        assert (name, wanted.repo, wanted.values) == ("test", "app", {"part": "a=b"})
        assert wanted.origin == "cli"
        assert wanted.job == {
            "priority": "P1",
            "labels": ["x"],
            "request_id": "r",
            "name": "n",
        }
        for wrong in (("--set", "part"), ("--in", "5m"), ("--", "make")):
            assert (await shell(*words, *wrong))[0] == 2
        assert (await shell("submit", "--set", "a=b", "--", "make"))[0] == 2
        assert (await shell("completions", "--words", "templates"))[1] == "test\n"


async def test_a_trusted_workflow_is_begun_by_its_name(
    tmp_path: Path, shell: Shell
) -> None:
    async with fake_service(tmp_path) as control:
        control.brought["app"] = VIEW
        words = ("ship", "--repo", "app", "--set", "v=2")
        status, out, _ = await shell("workflow", "run", *words, "--name", "now")
        assert (status, out) == (0, "w1\n")
        assert (await shell("workflow", "check", *words))[0] == 0
        first, second = (wanted for _, _, wanted in control.begun)
        assert (first.name, first.parameters, first.dry_run) == (
            "now",
            {"v": "2"},
            False,
        )
        assert (second.name, second.dry_run) == (None, True)
