"""The manual page: read by the program that shows such pages, where there is one."""

from __future__ import annotations

import importlib
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest

from forge_actors.cli.grammar import grammar
from forge_actors.cli.main import HIDDEN, VERBS, module_of
from forge_actors.cli.man import page

if TYPE_CHECKING:
    from tests.cli.shell import Shell


def test_every_verb_and_option_is_on_it(shell: Shell) -> None:
    status, out, _ = shell.now("man")
    assert status == 0
    for verb in VERBS:
        assert f".SH {verb.upper()}\n" in out
    assert "\\-\\-keep\\-leftovers" in out
    assert shell.now("man", "submit")[1].count(".SH") == 2
    status, _, err = shell.now("man", "sumbit")
    assert (status, "did you mean submit?" in err) == (2, True)


@pytest.mark.parametrize("verb", [None, "submit", "schedule"])
def test_it_is_well_formed(verb: str | None) -> None:
    for line in page(verb).splitlines():
        assert not line.startswith("'")
        if line.startswith("."):
            macro = line[1:].split(" ")[0]
            assert macro in {*("TH", "SH", "SS", "TP", "PP", "B", "I", "nf", "fi")} | {
                "RS",
                "RE",
            }
    groff = shutil.which("groff")
    if groff is not None:
        done = subprocess.run(
            [groff, "-man", "-Tutf8", "-ww"],
            input=page(verb),
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")


def test_what_only_we_start_is_in_no_list(shell: Shell) -> None:
    page = shell.now("man")[1].replace("\\-", "-")
    listed = {verb.name for verb in grammar()}
    for verb in HIDDEN:
        assert verb not in page
        assert verb not in listed
        assert importlib.import_module(module_of(verb)).run
