"""Elements as text. Whatever is in them, it stays text: nothing can leave its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_ESCAPED = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"}
)


def escape(text: str) -> str:
    """Text as it stands in an element or in the quotes of an attribute."""
    return text.translate(_ESCAPED)


def tag(name: str, *inner: str, **attributes: str | float) -> str:
    """An element. What is in it is markup already; attributes are escaped.

    A line below stands for a dash in their names, and one at the end is left out.
    """
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_told(value))}"'
        for key, value in attributes.items()
    )
    return f"<{name}{given}>{''.join(inner)}</{name}>"


def _told(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:.6g}"


def hint(lines: Iterable[str]) -> str:
    """What is shown when one points at the element that this is the first in."""
    return tag("title", escape("\n".join(lines)))
