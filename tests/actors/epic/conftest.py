from __future__ import annotations

import pytest

from tests.actors.epic.world import World


@pytest.fixture
def world() -> World:
    return World()
