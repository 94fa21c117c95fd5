"""The life of every kind of window in rounds, by the name of the kind; found by listing this folder."""

from __future__ import annotations

from windloom.model.windows import Window
from windloom.model.windows.registry import entries
from windloom.state.windows.lifecycle import WindowLifecycle

LIVES: dict[str, WindowLifecycle] = {
    life_class.window.kind: life_class()
    for life_class in entries(__name__, WindowLifecycle)  # type: ignore[type-abstract]
}


def life_of(window: Window) -> WindowLifecycle:
    """Return the life of a query's windows; all windows of a set have the same."""
    return LIVES[window.kind]
