"""Kinds of joins."""

from __future__ import annotations

from enum import StrEnum


class JoinKind(StrEnum):
    """Determines how often a row of the parent counts if n rows of the child match it."""

    INNER = "inner"  # n times
    LEFT = "left"  # n times, or once if n is 0, with NULLs for the child and for all sides below it
    SEMI = "semi"  # once if n > 0
    ANTI = "anti"  # once if n is 0

    @property
    def words(self) -> str:
        """The words for it in CQL.

        >>> JoinKind.INNER.words, JoinKind.ANTI.words
        ('JOIN', 'LEFT ANTI JOIN')
        """
        return {"inner": "JOIN", "left": "LEFT JOIN"}.get(self.value, f"LEFT {self.upper()} JOIN")

    @property
    def shows_child(self) -> bool:
        """Whether columns of the child can be named in the result."""
        return self in (JoinKind.INNER, JoinKind.LEFT)
