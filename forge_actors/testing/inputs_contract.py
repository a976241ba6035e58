"""What every implementation of the port `Inputs` must keep to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from forge_actors.domain.inputs import InputsMissing

if TYPE_CHECKING:
    from forge_actors.domain.inputs import Inputs, InputsWanted


class World(Protocol):
    """One implementation, and what it works on."""

    inputs: Inputs
    #: Inputs that can be placed.
    wanted: InputsWanted

    def is_there(self) -> bool:
        """Whether there is something in the folder that is wanted."""

    def lose(self) -> None:
        """Let them not be there to be placed any more."""


async def check_they_are_there_until_they_are_removed(world: World) -> None:
    assert not world.is_there()
    await world.inputs.place(world.wanted)
    assert world.is_there()
    await world.inputs.remove(world.wanted.folder)
    assert not world.is_there()


async def check_what_an_earlier_one_has_left_is_no_hindrance(world: World) -> None:
    await world.inputs.place(world.wanted)
    await world.inputs.place(world.wanted)
    assert world.is_there()


async def check_nothing_is_left_where_they_cannot_be_placed(world: World) -> None:
    await world.inputs.place(world.wanted)
    world.lose()
    try:
        await world.inputs.place(world.wanted)
    except InputsMissing:
        pass
    else:
        raise AssertionError("they were placed, though they are not there")
    assert not world.is_there()


async def check_nothing_to_remove_is_no_problem(world: World) -> None:
    await world.inputs.remove(world.wanted.folder)
    assert not world.is_there()


CHECKS = (
    check_they_are_there_until_they_are_removed,
    check_what_an_earlier_one_has_left_is_no_hindrance,
    check_nothing_is_left_where_they_cannot_be_placed,
    check_nothing_to_remove_is_no_problem,
)
