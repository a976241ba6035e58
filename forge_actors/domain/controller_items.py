"""What the inbox has of controllers that wait for a person."""

from __future__ import annotations

from typing import TYPE_CHECKING

from forge_actors.domain.controller_records import loaded
from forge_actors.domain.inbox import Item
from forge_actors.domain.redaction import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable


def waiting_items(
    rows: Iterable[tuple[str, str, bytes]], moment: Callable[[float], str | None]
) -> list[Item]:
    """The items of those rows: another one each time that one begins to wait."""
    return [_item(*row, moment) for row in rows]


def _item(
    key: str, name: str, body: bytes, moment: Callable[[float], str | None]
) -> Item:
    controller, _ = loaded(key, name, body)
    item = f"controller:{key}:{controller.since:.0f}"
    evidence = {"controller": name, "turns": str(controller.rounds)}
    actions = [f"forge-actors controller show {name}"]
    if controller.job is not None:
        evidence["job"] = controller.job
        actions.append(f"forge-actors logs {controller.job}")
    if controller.state == "quarantined":
        actions.append(f"forge-actors controller remove {name}")
    else:
        actions.append(f"forge-actors controller resume {name}")
    return Item(
        id=item,
        kind="controller",
        says=f"controller {name} goes on no more until a person has looked:"
        f" {redact(controller.why or 'it does not say why')}",
        since=moment(controller.since) if controller.since else None,
        repo=None,
        job=controller.job,
        evidence=evidence,
        actions=[*actions, f"forge-actors inbox dismiss {item}"],
    )
