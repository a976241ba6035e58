"""Settings of webhooks: who is told of which events, and where."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from forge_actors.domain.deadlines import parse_budget
from forge_actors.domain.errors import InvalidInput
from forge_actors.domain.events import KINDS
from forge_actors.domain.webhooks import (
    MAX_HOOKS,
    check_hook_name,
    chosen,
    fingerprint,
    parse_target,
)
from forge_actors.runtime.secrets import check_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from forge_actors.domain.settings import Value


class WebhookTable(Struct, frozen=True, forbid_unknown_fields=True):
    """One `[[webhooks]]`."""

    name: str
    url: str
    #: The name of the secret that it is signed with.
    secret: str
    #: Kinds of events; one with a star means all that begin so.
    kinds: tuple[str, ...] = ("*",)
    #: Names of repositories; without any, all events.
    repositories: tuple[str, ...] = ()
    #: How long one delivery may take.
    timeout: str | float = "10s"
    #: After so long without one that worked it is told nothing more.
    give_up: str | float = "24h"

    @property
    def seconds(self) -> float:
        return parse_budget(self.timeout, field=f"webhooks.{self.name}.timeout")

    @property
    def patience(self) -> float:
        """Seconds."""
        return parse_budget(self.give_up, field=f"webhooks.{self.name}.give_up")

    @property
    def wanted(self) -> tuple[str, ...]:
        """The kinds of events; none for all."""
        if "*" in self.kinds:
            return ()
        return chosen(self.kinds, KINDS, field=f"webhooks.{self.name}.kinds")

    def values(self) -> dict[str, Value]:
        """What is shown of it: of the URL only where it leads."""
        place = f"webhooks.{self.name}"
        return {
            f"{place}.url": shown_url(self.url),
            f"{place}.secret": self.secret,
            f"{place}.kinds": ",".join(self.kinds),
            f"{place}.repositories": ",".join(self.repositories) or None,
            f"{place}.timeout": self.timeout,
            f"{place}.give_up": self.give_up,
        }


def check_hooks(hooks: Sequence[WebhookTable]) -> None:
    """Check what the types do not tell.

    Raises:
        InvalidInput: naming the hook and the field.
    """
    if len(hooks) > MAX_HOOKS:
        raise InvalidInput("webhooks", f"are more than {MAX_HOOKS}")
    names: set[str] = set()
    for number, hook in enumerate(hooks):
        check_hook_name(hook.name, field=f"webhooks[{number}].name")
        if hook.name in names:
            raise InvalidInput(f"webhooks[{number}].name", "is there twice")
        names.add(hook.name)
        parse_target(hook.url, field=f"webhooks.{hook.name}.url")
        check_name(hook.secret, field=f"webhooks.{hook.name}.secret")
        if not hook.kinds:
            raise InvalidInput(f"webhooks.{hook.name}.kinds", "names none; * is all")
        _ = hook.seconds, hook.patience, hook.wanted


def shown_url(url: str) -> str:
    """Where a URL leads, and what tells it from others; its path can be a secret."""
    return f"{parse_target(url, field='url').shown} ({fingerprint(url)})"
