"""Answers of a query as lines over time: an object that notebooks show, and that scripts save."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from windloom.answers.presentation import local_times
from windloom.errors import WindloomError, near_names
from windloom.explain.picture.line_charts import Series, line_chart
from windloom.model.types import as_array
from windloom.state.cells import number_groups

#: The most lines that can still be told apart, and the most points that a line of this width shows.
MOST_LINES, _MOST_POINTS = 10, 300


@dataclass(frozen=True, slots=True, repr=False)
class Plot:
    """A picture of answers: a notebook shows it, `save` writes it to a file, and `svg` is its text."""

    svg: str
    about: str

    def save(self, path: str | Path) -> None:
        """Write the picture to a file whose name ends in .svg or .png; PNG needs the package cairosvg."""
        save_picture(self.svg, Path(path))

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<plot of {self.about}; .save('plot.svg') writes it, notebooks show it>"


def save_picture(svg: str, path: Path) -> None:
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise WindloomError(
            f"cannot save a picture as '{path}'",
            f"its ending is '{kind}'" if kind else "it has no ending",
            "use .svg or .png",
        )
    if kind == ".png" and find_spec("cairosvg") is None:
        raise WindloomError(
            f"cannot save '{path}': a picture as PNG needs the package cairosvg",
            "it is not installed, and nothing else needs it",
            "pip install cairosvg, or save it as .svg, which browsers and documents show",
        )
    try:
        if kind == ".svg":
            path.write_text(svg, encoding="utf-8")
        else:
            path.write_bytes(import_module("cairosvg").svg2png(bytestring=svg.encode()))
    except OSError as error:
        raise WindloomError(f"cannot write '{path}'", str(error.strerror or error), "give another path") from None


def plot_of(
    name: str,
    rows: pa.Table,
    by: Sequence[str],
    column: str | None,
    groups: Sequence[Any] | None,
    most: int,
    zone: str,
) -> Plot:
    """Return a column over time, a line per group: of `groups`, or else of those with the highest mean."""
    figure = _figure(rows, by, column)
    rows = local_times(rows.select(["window_end", *by, figure]).sort_by("window_end"), zone)
    values = np.asarray(rows[figure].cast(pa.float64()).fill_null(np.nan), np.float64)
    if by:
        numbers, distinct = number_groups([as_array(rows[name]) for name in by], rows.num_rows)
        keys = list(zip(*(column.to_pylist() for column in distinct), strict=True))
    else:
        numbers, keys = np.zeros(rows.num_rows, np.int64), [()]
    chosen = _highest(numbers, values, len(keys), most) if groups is None else _asked(name, groups, keys)
    ends = rows["window_end"].combine_chunks()
    series = []
    for number in chosen:
        places = np.flatnonzero(numbers == number)
        places = places[_shown(values[places])]
        points = [None if np.isnan(value) else float(value) for value in values[places]]
        label = ", ".join(map(str, keys[number])) or figure
        series.append(Series(label, list(zip(ends.take(pa.array(places)).to_pylist(), points, strict=True))))
    left_out = len(keys) - len(chosen)
    label = figure
    if left_out and groups is None:
        label = f"{figure}; {left_out:,} more groups are not shown, whose mean is lower"
    about = f"'{figure}' of '{name}', {len(series):,} of {len(keys):,} {'group' if len(keys) == 1 else 'groups'}"
    return Plot(line_chart(series, y_label=label, title=f"{figure} of {name}"), about)


def _figure(rows: pa.Table, by: Sequence[str], column: str | None) -> str:
    fields = [field for field in rows.schema if field.name not in ("window_start", "window_end", *by)]
    is_number = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    numbers = [field.name for field in fields if any(is_kind(field.type) for is_kind in is_number)]
    if column is None and numbers:
        return str(numbers[0])
    if column is not None and column in numbers:
        return column
    what = "the query has no column of numbers" if column is None else f"column '{column}' is not one of numbers"
    known = near_names(column or "", numbers) if numbers else "read the rows instead: arrow(name), or pandas(name)"
    raise WindloomError(f"there is nothing to plot: {what}", f"its columns are {', '.join(rows.column_names)}", known)


def _highest(numbers: NDArray[np.int64], values: NDArray[np.float64], groups: int, most: int) -> list[int]:
    """Return the groups with the highest mean, the highest first."""
    if most < 1:
        raise WindloomError(f"cannot plot {most} groups", "most= says how many lines there may be", "give 1 or more")
    if groups <= most:
        return list(range(groups))
    is_known = ~np.isnan(values)
    counts = np.bincount(numbers[is_known], minlength=groups)
    sums = np.bincount(numbers[is_known], values[is_known], minlength=groups)
    means = np.where(counts > 0, sums / np.maximum(counts, 1), -np.inf)
    return [int(number) for number in np.argsort(-means, kind="stable")[:most]]


def _asked(name: str, groups: Sequence[Any], keys: Sequence[tuple[Any, ...]]) -> list[int]:
    """Return the groups that were asked for, each given as its value, or as a tuple of values."""
    number_of = {key: number for number, key in enumerate(keys)}
    found = []
    for group in [groups] if isinstance(groups, str) else groups:
        key = group if isinstance(group, tuple) else (group,)
        if key not in number_of:
            shown = [", ".join(map(str, known)) for known in keys]
            raise WindloomError(
                f"query '{name}' has no group {group!r}",
                f"it has {len(keys):,}, such as {'; '.join(shown[:3])}",
                near_names(", ".join(map(str, key)), shown),
            )
        found.append(number_of[key])
    return found


def _shown(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the places of the points to draw: of a long line, the least and the greatest value of each stretch."""
    if len(values) <= _MOST_POINTS:
        return np.arange(len(values))
    places: list[int] = []
    for stretch in np.array_split(np.arange(len(values)), _MOST_POINTS // 2):
        known = stretch[~np.isnan(values[stretch])]
        ends = stretch[:1] if not len(known) else known[[values[known].argmin(), values[known].argmax()]]
        places += sorted({int(place) for place in ends})
    return np.array(places, np.int64)
