"""The window kinds that queries name, found by listing this folder: a new one is a file, and no line here.

`VersionWindow` is not among them: it is what a relation has instead of a window.
"""

from __future__ import annotations

from importlib import import_module
from inspect import isabstract
from pkgutil import iter_modules
from typing import TypeVar

from windloom.model.windows.window import Window

Entry = TypeVar("Entry")


def entries(registry: str, base: type[Entry]) -> list[type[Entry]]:
    """Return the concrete classes of a base that the modules beside a registry define, by name of the module."""
    package = registry.rpartition(".")[0]
    modules = [import_module(f"{package}.{found.name}") for found in iter_modules(import_module(package).__path__)]
    defined = [(module.__name__, value) for module in modules for value in vars(module).values()]
    classes = [value for name, value in defined if isinstance(value, type) and value.__module__ == name]
    return [each for each in classes if issubclass(each, base) and not isabstract(each)]


_CLASSES = sorted(entries(__name__, Window), key=lambda each: each.listed_at)  # type: ignore[type-abstract]

KINDS: dict[str, type[Window]] = {each.kind: each for each in _CLASSES if not each.is_version}

#: Spark's functions that make windows.
WINDOW_FUNCTIONS: tuple[str, ...] = tuple(
    window_class.function for window_class in KINDS.values() if window_class.function is not None
)
