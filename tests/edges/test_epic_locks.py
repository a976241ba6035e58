"""Locks of EPIC runs: of one repository, and of its issues."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.epic.locks import FakeKernel, FakeLocks
from forge_actors.testing.epic.locks_contract import CHECKS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from forge_actors.testing.epic.locks import Inherited
    from forge_actors.testing.epic.locks_contract import World


class Faked:
    """The locks for tests of others."""

    def __init__(self, folder: Path) -> None:
        self.kernel = FakeKernel()
        self.locks = FakeLocks(self.kernel, pid=1)
        self.others = FakeLocks(self.kernel, pid=2)

    def inherit(self, descriptor: int) -> Inherited:
        return self.kernel.inherit(descriptor)

    def has_folder(self, issue: int) -> bool:
        return issue in self.kernel.made

    def use_folder(self, issue: int) -> None:
        self.kernel.used.add(issue)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("made", [Faked])
def test_every_implementation_keeps_the_contract(
    made: Callable[[Path], World], check: Callable[[World], None], tmp_path: Path
) -> None:
    check(made(tmp_path))
