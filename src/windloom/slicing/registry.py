"""The slicings by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Protocol

from windloom.errors import find_named
from windloom.model.windows import Window
from windloom.slicing.cutty import Cutty
from windloom.slicing.edges import EdgeClass
from windloom.slicing.pairs import Pairs
from windloom.slicing.panes import Panes


class Slicing(Protocol):
    """Where partials begin (`edges`) and where a running value is read inside a partial (`marks`)."""

    @property
    def name(self) -> str: ...

    def edges(self, window: Window) -> tuple[EdgeClass, ...]: ...

    def marks(self, window: Window) -> tuple[EdgeClass, ...]: ...


SLICINGS: dict[str, Slicing] = {slicing.name: slicing for slicing in (Pairs(), Panes(), Cutty())}


def find_slicing(name: str) -> Slicing:
    return find_named("slicing", name, SLICINGS, "it says where streams are cut into slices")
