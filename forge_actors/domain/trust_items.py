"""What the inbox has of repositories whose files are not what is trusted of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.forge_files import FOLDER
from forge_actors.domain.inbox import Item
from forge_actors.domain.trust import differs_from

if TYPE_CHECKING:
    from collections.abc import Callable

#: Hex digits of a digest that tell one content from another in an id.
SHORT = 12


def differing_item(
    repo: str, name: str, body: bytes, moment: Callable[[float], str | None]
) -> Item:
    """The item of one: another one each time they say something else."""
    differs = differs_from(body)
    item = f"trust:{repo}:{differs.digest[:SHORT]}"
    what = differs.problem or "they say something else than what was trusted"
    return Item(
        id=item,
        kind="trust",
        says=f"the files {FOLDER}/*.toml of {name} were changed: {what}; what was"
        " trusted is what holds",
        since=moment(differs.seen),
        repo=name,
        job=None,
        evidence={"files": " ".join(differs.files)},
        actions=[
            f"forge-actors repo trust {name} --show",
            f"forge-actors repo trust {name}",
            f"forge-actors inbox dismiss {item}",
        ],
    )
