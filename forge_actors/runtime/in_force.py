"""The settings in force, and how they are exchanged while jobs run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import trio
from msgspec import structs, to_builtins

from forge_actors.domain.changes import Noted, SettingsChanged
from forge_actors.domain.errors import Refused
from forge_actors.domain.events import Event, limits_in_force
from forge_actors.domain.settings import SettingChange
from forge_actors.runtime.settings import LIVE, Settings, checked, settings_from
from forge_actors.runtime.sources import Loaded, given, load

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from forge_actors.domain.changes import Change
    from forge_actors.domain.ports import Clock, Store


class SettingsInForce:
    """Calling it gives the settings as they are now."""

    def __init__(
        self, loaded: Loaded, path: Path | None, store: Store, clock: Clock
    ) -> None:
        self._loaded = loaded
        #: The file they come from; None if a program gave them.
        self._path = path
        self._store = store
        self._clock = clock
        self._one_at_a_time = trio.Lock()
        #: Tells the parts of the runtime that hold limits of their own.
        self.exchanged: Callable[[Settings], None] = lambda _: None

    def __call__(self) -> Settings:
        return self._loaded.settings

    @property
    def loaded(self) -> Loaded:
        """The settings with where each comes from."""
        return self._loaded

    async def reload(self) -> list[SettingChange]:
        """Read the file and the environment again; all of it holds or none.

        What changed is durable before it holds.

        Raises:
            InvalidInput: naming the file and its line, or the variable.
            Refused: there is no file to read again.
            StoreFailed: it could not be saved.
        """
        if self._path is None:
            raise Refused("these settings were given by the program that runs this")
        async with self._one_at_a_time:
            loaded = load(self._path, os.environ)
            changes = compare(self(), loaded.settings)
            loaded = live_part(self._loaded, loaded)
            live = [change for change in changes if not change.needs_restart]
            if not live:
                self._loaded = loaded  # the same from another place, perhaps
                return changes
            await self._exchange(loaded, live)
            return changes

    async def change(
        self, changes: Mapping[str, Mapping[str, Any]]
    ) -> list[SettingChange]:
        """Have other values hold in place of those that a program gave.

        Raises:
            InvalidInput: naming the field; nothing changed.
            Refused: they are those of a file, or one cannot be exchanged live.
            StoreFailed: it could not be saved.
        """
        if self._path is not None:
            raise Refused(f"these settings are those of {self._path}: change that file")
        async with self._one_at_a_time:
            tables = _merged(to_builtins(self()), changes)
            loaded = given(settings_from(tables))
            changed = compare(self(), loaded.settings)
            if fixed := [each.name for each in changed if each.needs_restart]:
                raise Refused(
                    f"{', '.join(fixed)} cannot be changed while the runtime runs:"
                    " give it to open_runtime"
                )
            if changed:
                await self._exchange(loaded, changed)
            return changed

    async def _exchange(self, loaded: Loaded, live: Sequence[SettingChange]) -> None:
        """Let others hold, once it is durable what changed."""
        told = {each.name: {"old": each.old, "new": each.new} for each in live}
        now = self._clock.now()
        event = Event("settings_changed", now, data={"changed": told})

        def hold() -> None:
            self._loaded = loaded
            self.exchanged(loaded.settings)

        saved: list[Change] = [
            SettingsChanged(event),
            Noted(in_force(loaded.settings, now)),
        ]
        await self._store.save(saved, then=hold).wait()


def _merged(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """The tables with other values; a table in one is merged in the same way."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, Mapping):
            value = _merged(before, value)
        merged[name] = value
    return merged


def resolve(path: Path, settings: Settings | Mapping[str, Any] | None) -> Loaded:
    """The settings that a runtime begins with: those given, or else those of a file.

    Raises:
        InvalidInput: naming the field, and what it comes from.
    """
    if settings is None:
        return load(path)
    if isinstance(settings, Settings):
        return given(checked(settings))
    return given(settings_from(settings))


def in_force(settings: Settings, now: float) -> Event:
    """The event that says how much may be in use at once from now on."""
    return limits_in_force(settings.token_limits(), settings.repository_workers, now)


def live_part(old: Loaded, new: Loaded) -> Loaded:
    """What holds once `new` was read: of it only what can be exchanged live."""
    sections = {section: getattr(new.settings, section) for section in LIVE}
    kept = {n: view for n, view in old.sources.items() if not _is_live(n)}
    taken = {n: view for n, view in new.sources.items() if _is_live(n)}
    return Loaded(structs.replace(old.settings, **sections), kept | taken)


def _is_live(name: str) -> bool:
    return name.partition(".")[0] in LIVE


def compare(old: Settings, new: Settings) -> list[SettingChange]:
    """What is different, by the full names of settings."""
    before, after = old.values(), new.values()
    return [
        SettingChange(
            name,
            before.get(name),
            after.get(name),
            needs_restart=not _is_live(name),
        )
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]
