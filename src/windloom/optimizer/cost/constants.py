"""The constants of the calibrated cost model: shipped, or measured on this machine by `windloom calibrate`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from platformdirs import user_config_path

from windloom.errors import WindloomError

#: The number is increased when constants change their meaning.
FORMAT = "windloom-costs/3"
#: The environment variable that holds the path of the constants to use.
VARIABLE = "WINDLOOM_COSTS"

#: The costs of what every plan does, whatever its techniques, in nanoseconds.
RUNTIME = (
    "job",  # one Spark job, before it has done anything
    "shuffle",  # added where the job aggregates
    "tuple",  # scanned, sliced and aggregated
    "tuple_field",  # for each column of partials computed
    "tuple_key",  # for each grouping column
    "tuple_class",  # for each edge class that the slice id compares
    "partial",  # shuffled and fetched from the JVM
    "partial_field",
    "woven_tuple",  # scanned and projected
    "woven_column",  # for each column of it, fetched from the JVM and read
    "woven_update",  # for each column of cells that it is folded into
    "woven_list",  # for each list that it is counted in
    "woven_cell",  # for each column of a cell that is made this way
    "read",  # a partial put in its place among the cells
    "read_key",  # its group found by key
    "read_column",
    "coarsen",  # a cell of the set merged into a slice of a tree
    "coarsen_column",
    "row",  # an answer: its window found, its time and group written
    "row_value",  # a value of it
    "row_uneven",  # added for finding a window that does not move evenly
    "row_move",  # and for each doubling of the cells it moves by
    "row_unequal",  # added for finding a window where slices are of unequal length
    "lane",  # a query in a group, before it has answered anything
    "query",  # a column of a query, before it has answered anything
    "tree",  # a tree, before it has answered anything
    "fold_group",  # a group of a side of a join, whose key is numbered
    "fold_row",  # two rows of sides of a join that match
    "fold_value",  # a value of theirs, multiplied and added up
    "matrix_cell",  # a cell of a side, put in its place for a slice matrix
    "matrix_pair",  # two cells that some window holds together, with up to four sums of integers
    "matrix_value",  # any other value of theirs, multiplied and added up
    "matrix_window",  # a value of a group in a window, looked up or combined
)


@dataclass(frozen=True, eq=False)
class Constants:
    """The constants of the calibrated cost model.

    `techniques[cost name][family][term]` and `runtime[name]`, in nanoseconds.
    """

    runtime: Mapping[str, float]
    techniques: Mapping[str, Mapping[str, Mapping[str, float]]]
    machine: str = ""
    source: str = "shipped"
    deviation: Mapping[str, float] = field(default_factory=dict)  # the mean deviation of each fit

    def seconds(self, name: str) -> float:
        nanoseconds = self.runtime.get(name)
        if nanoseconds is None:  # measured by a version of Windloom that did not have it yet
            nanoseconds = shipped_constants().runtime[name]
        return nanoseconds * 1e-9

    def of(self, technique: str, family: str) -> Mapping[str, float]:
        terms = self.techniques.get(technique, {}).get(family)
        if terms is None and self.source != "shipped":
            # Measured by a version of Windloom that did not have them yet.
            terms = shipped_constants().techniques.get(technique, {}).get(family)
        if terms is None:
            raise WindloomError(
                f"the cost of technique '{technique}' on {family} is not known",
                f"the constants ({self.source}) do not have it",
                "measure it: windloom calibrate",
            )
        return terms

    def scaled(self, factor: float) -> Constants:
        """Return the constants times a factor: windows of rows count positions, a million of which are a second."""
        if factor == 1.0:
            return self

        techniques = {
            name: {family: {term: factor * cost for term, cost in terms.items()} for family, terms in families.items()}
            for name, families in self.techniques.items()
        }
        runtime = {name: factor * cost for name, cost in self.runtime.items()}
        return replace(self, runtime=runtime, techniques=techniques)

    def to_json(self) -> str:
        document = {
            "format": FORMAT,
            "machine": self.machine,
            "runtime": dict(self.runtime),
            "techniques": self.techniques,
            "deviation": dict(self.deviation),
        }
        return json.dumps(document, indent=1, sort_keys=True) + "\n"


def constants_path() -> Path:
    """Return where `windloom calibrate` keeps this user's constants."""
    if os.environ.get(VARIABLE):
        return Path(os.environ[VARIABLE])
    return user_config_path("windloom", appauthor=False) / "costs.json"


_IN_FORCE: ContextVar[Constants | None] = ContextVar("constants in force", default=None)


@contextmanager
def in_force(constants: Constants) -> Iterator[None]:
    """Make plans with these constants inside the block; no file is read, so it may be missing or damaged."""
    before = _IN_FORCE.set(constants)
    try:
        yield
    finally:
        _IN_FORCE.reset(before)


def load_constants() -> Constants:
    """Return the constants that the environment variable names, or else this user's, or else those that ship."""
    forced = _IN_FORCE.get()
    if forced is not None:
        return forced
    path = constants_path()
    if not os.environ.get(VARIABLE) and not path.exists():
        return shipped_constants()
    try:
        stamp = path.stat().st_mtime_ns
    except OSError as error:
        raise WindloomError(
            f"cannot read the cost constants '{path}'",
            str(error),
            f"measure them with `windloom calibrate`, set {VARIABLE} to another file, or unset it",
        ) from None
    return _load(path, stamp)


@lru_cache(maxsize=8)
def _load(path: Path, stamp: int) -> Constants:
    try:
        return read_constants(path.read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise WindloomError(f"cannot read the cost constants '{path}'", str(error), _AGAIN) from None


@lru_cache(maxsize=1)
def shipped_constants() -> Constants:
    text = files("windloom.optimizer.cost").joinpath("constants.json").read_text(encoding="utf-8")
    return read_constants(text, "shipped")


_AGAIN = "measure them again with `windloom calibrate`, or remove the file to use those that ship"


def read_constants(text: str, source: str) -> Constants:
    def damaged(fact: str) -> WindloomError:
        return WindloomError(f"the cost constants '{source}' are damaged", fact, _AGAIN)

    try:
        document: Any = json.loads(text)
    except ValueError as error:
        raise damaged(f"they are not JSON: {error}") from None
    if not isinstance(document, dict) or not str(document.get("format", "")).startswith("windloom-costs/"):
        raise damaged("they do not begin with a format of windloom-costs")
    if document["format"] != FORMAT:
        raise WindloomError(
            f"the cost constants '{source}' belong to another version of windloom",
            f"their format is {document['format']}, this version reads {FORMAT}",
            _AGAIN,
        )
    runtime: Any = document.get("runtime")
    techniques: Any = document.get("techniques")
    if not _are_costs(runtime):
        raise damaged("'runtime' must be numbers of nanoseconds, none negative")
    missing = [name for name in RUNTIME if name not in runtime]
    if missing:
        raise damaged(f"'runtime' lacks '{missing[0]}'")
    if not isinstance(techniques, dict) or not all(
        isinstance(families, dict) and all(_are_costs(terms) for terms in families.values())
        for families in techniques.values()
    ):
        raise damaged("'techniques' must be numbers of nanoseconds by technique, family and term, none negative")
    deviation = document.get("deviation", {})
    if not _are_costs(deviation):
        raise damaged("'deviation' must be numbers, none negative")
    return Constants(runtime, techniques, str(document.get("machine", "")), source, deviation)


def _are_costs(values: Any) -> bool:
    return isinstance(values, dict) and all(
        isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")
        for value in values.values()
    )
