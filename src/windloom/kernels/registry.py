"""The final-aggregation techniques by name; a new one is one file and one line here."""

from __future__ import annotations

from typing import Any, Protocol

from windloom.errors import WindloomError, near_names
from windloom.kernels.block_decomposition import BlockDecomposition
from windloom.kernels.prefix_ring import PrefixRing
from windloom.kernels.recalculate import Recalculate
from windloom.model.aggregate import Family, Needs


class Technique(Protocol):
    """Answers many windows over sorted cells; of the rows of `out`, those of `queries` are written."""

    @property
    def name(self) -> str: ...

    @property
    def needs(self) -> Needs: ...

    def evaluate(self, cells: Any, group_bounds: Any, lanes: Any, queries: Any, out: Any) -> None: ...


TECHNIQUES: dict[str, Technique] = {one.name: one for one in (Recalculate(), PrefixRing(), BlockDecomposition())}

#: Cheapest first; the first technique whose needs a family meets answers it.
_PREFERENCE = ("prefix_ring", "block_decomposition")


def allowed(family: Family) -> list[str]:
    """Names of the techniques a family's properties permit."""
    return [name for name, technique in TECHNIQUES.items() if technique.needs in family.has]


def find_technique(name: str) -> Technique:
    if name not in TECHNIQUES:
        raise WindloomError(
            f"unknown technique '{name}'",
            "it says how slices are combined into windows",
            near_names(name, ["auto", *TECHNIQUES]),
        )
    return TECHNIQUES[name]


def choose_technique(family: Family, forced: str = "auto") -> str:
    """The technique for a family: the forced one if its needs are met, else a refusal that says why."""
    if forced == "auto":
        return next(name for name in _PREFERENCE if TECHNIQUES[name].needs in family.has)
    missing = find_technique(forced).needs & ~family.has
    if missing:
        lacks = ", ".join(str(one.name).lower() for one in missing)
        raise WindloomError(
            f"technique '{forced}' cannot evaluate {family.value}",
            f"it needs the operation to be {lacks}, and {family.value} is not",
            "use technique='auto' or one of: " + ", ".join(allowed(family)),
        )
    return forced
