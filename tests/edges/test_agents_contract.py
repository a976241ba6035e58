"""Every adapter keeps the contract with the program that plays its own."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from forge_actors.testing.agents import NAMES
from forge_actors.testing.agents_contract import CHECKS
from tests.edges.agents_kit import FakeStage

if TYPE_CHECKING:
    from pathlib import Path

    from forge_actors.testing.agents_contract import Check


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
async def test_an_adapter_keeps_the_contract(
    name: str, check: Check, tmp_path: Path
) -> None:
    await check(FakeStage(tmp_path, name))
