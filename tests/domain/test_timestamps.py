"""Every reader sees one text for one moment."""

from __future__ import annotations

import pytest

from forge_actors.domain.timestamps import timestamp


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "1970-01-01T00:00:00.000Z"),
        (0.9999996, "1970-01-01T00:00:00.999Z"),
        (951782400.5, "2000-02-29T00:00:00.500Z"),
    ],
)
def test_a_moment_is_cut_at_its_millisecond(seconds: float, text: str) -> None:
    assert timestamp(seconds) == text
