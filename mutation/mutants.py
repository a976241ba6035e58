"""What a mutant is: one small change of one function, and where it stands."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutant:
    #: As mutmut calls it; it starts with the dotted name of the module.
    name: str
    path: str
    line: int
    #: The smallest piece of code that holds the change, before and after.
    was: str
    now: str
    #: The argument that is gone or None now, where that is the change.
    argument: str
    #: The kinds of nodes around the change, the nearest last.
    within: tuple[str, ...]

    @property
    def function(self) -> str:
        """The name that mutmut files the tests under which reach the function."""
        return self.name.partition("__mutmut_")[0]

    @property
    def room(self) -> str:
        return "/".join(self.path.split("/")[:2])

    @property
    def place(self) -> str:
        """The function as a reader writes it: `module.Class.method`."""
        module, _, name = self.function.rpartition(".")
        name = name.removeprefix("x_").removeprefix("xǁ").replace("ǁ", ".")
        return f"{module.removeprefix('forge_actors.')}.{name}"
