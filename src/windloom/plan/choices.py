"""The choices of a plan where it could have chosen otherwise: a record keeps them, and a later round may switch them.

No choice changes a row. Trees and techniques are choices of every plan; all others are options of *switches*, which
are registered in `optimizer/adapt/candidates.py` and known here by name only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, order=True)
class TreeChoice:
    """The queries of one tree, and the techniques of components (by their text) that are not the usual ones."""

    queries: tuple[str, ...]
    techniques: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """All choices of a plan, in a fixed order: plans with equal choices do the same.

    `options` has (switch, about, option): ("intake", "trades", "native").
    """

    trees: tuple[TreeChoice, ...] = ()
    options: tuple[tuple[str, str, str], ...] = ()

    @classmethod
    def of(cls, trees: Iterable[TreeChoice], options: Mapping[str, Mapping[str, str]]) -> Choices:
        flat = ((switch, about, option) for switch, chosen in options.items() for about, option in chosen.items())
        return cls(tuple(sorted(trees)), tuple(sorted(flat)))

    def option(self, switch: str, about: str, otherwise: str) -> str:
        """The option of a switch for a stream or join, or `otherwise` if none was chosen."""
        return next(
            (option for name, chosen_for, option in self.options if (name, chosen_for) == (switch, about)), otherwise
        )

    def options_of(self, switch: str) -> dict[str, str]:
        return {about: option for name, about, option in self.options if name == switch}

    def with_option(self, switch: str, about: str, option: str) -> Choices:
        """These choices with another option of one switch."""
        others = (option for option in self.options if option[:2] != (switch, about))
        return Choices(self.trees, tuple(sorted((*others, (switch, about, option)))))

    @property
    def tree_names(self) -> list[list[str]]:
        """The names of the queries of each tree."""
        return [list(tree.queries) for tree in self.trees]

    def __or__(self, other: Choices) -> Choices:
        """The choices of two plans that have no query and no stream in common."""
        return Choices(tuple(sorted(self.trees + other.trees)), tuple(sorted(self.options + other.options)))
