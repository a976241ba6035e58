"""A moment is a time with its offset, or a span that ends now."""

from __future__ import annotations

import pytest

from forge_actors.domain.errors import InvalidInput
from forge_actors.runtime.moments import parse_moment


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1970-01-01T00:01:40Z", 100.0),
        ("1970-01-01T01:01:40.5+01:00", 100.5),
        (" 1970-01-01 00:01:40+00:00 ", 100.0),
        ("10m", 400.0),
        ("90", 910.0),
        ("0s", 1000.0),
        ("1d", -85_400.0),
    ],
)
def test_a_moment_is_seconds_since_1970(text: str, seconds: float) -> None:
    assert parse_moment(text, 1000.0, field="since") == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("yesterday", "since: 'yesterday' is neither a time such as 2026-01-02T03"),
        ("", "since: '' is neither"),
        ("-5m", "since: '-5m' is neither"),
        ("1970-01-01T00:00:00", "does not say which offset it has; put Z behind UTC"),
        ("1970-13-01T00:00:00Z", "is neither"),
    ],
)
def test_anything_else_is_told(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_moment(text, 1000.0, field="since")
    assert message in str(caught.value)
