"""The techniques of final aggregation by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Any, Protocol

from windloom.errors import WindloomError, find_named
from windloom.kernels.families import Family
from windloom.kernels.lists.frequencies import RunningCounts
from windloom.kernels.techniques.b_int import BInt
from windloom.kernels.techniques.block_decomposition import BlockDecomposition
from windloom.kernels.techniques.daba import Daba
from windloom.kernels.techniques.flat_fat import FlatFat
from windloom.kernels.techniques.flat_fit import FlatFit
from windloom.kernels.techniques.prefix_ring import PrefixRing
from windloom.kernels.techniques.recalculate import Recalculate
from windloom.kernels.techniques.slick_deque import SlickDeque
from windloom.kernels.techniques.subtract_on_evict import SubtractOnEvict
from windloom.kernels.techniques.two_stacks import TwoStacks
from windloom.model.aggregate import Property


class Technique(Protocol):
    """Answers many windows over sorted cells; writes those rows of `out` that belong to `queries`."""

    name: str

    @property
    def needs(self) -> tuple[Property, ...]:
        """Alternatives: the technique applies to an operation that has all properties of one of them."""
        ...

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None: ...


class SteppingTechnique(Technique, Protocol):
    """Answers window after window, and can record a stamp (see `operations`) after each."""

    def evaluate(
        self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any, stamps: Any = None
    ) -> None: ...


STEPPING: dict[str, SteppingTechnique] = {
    technique.name: technique
    for technique in (SubtractOnEvict(), SlickDeque(), TwoStacks(), Daba(), FlatFit(), FlatFat(), BInt())
}

TECHNIQUES: dict[str, Technique] = {
    **{technique.name: technique for technique in (Recalculate(), PrefixRing(), BlockDecomposition(), RunningCounts())},
    **STEPPING,
}


def permits(technique: Technique, family: Family) -> bool:
    """Return whether the family has all properties of one of the technique's alternatives."""
    return any(needs in family.has for needs in technique.needs)


def allowed(family: Family) -> list[str]:
    """Return the names of the techniques that the properties of a family permit."""
    return [name for name, technique in TECHNIQUES.items() if permits(technique, family)]


def find_technique(name: str) -> Technique:
    return find_named("technique", name, TECHNIQUES, "it says how slices are combined into windows", "auto")


def choose_technique(family: Family, forced: str = "auto") -> str:
    """Return the technique for a family: its usual one, or the forced one, which is refused if it does not apply."""
    if forced == "auto":
        return family.usual
    technique = find_technique(forced)
    if not permits(technique, family):
        if family.is_list or technique.needs == (Property.LISTS,):
            what = "lists of values, and it combines values of a fixed size" if family.is_list else "no lists of values"
            reason = f"slices hold {what}"
        else:
            lacks = " or ".join(
                " and ".join(str(need.name).lower().replace("_", " ") for need in needs & ~family.has)
                for needs in technique.needs
            )
            reason = f"it needs the operation to be {lacks}, and {family.name} is not"
        raise WindloomError(
            f"technique '{forced}' cannot evaluate {family.name}",
            reason,
            "use technique='auto' or one of: " + ", ".join(allowed(family)),
        )
    return forced
