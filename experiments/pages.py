"""What an experiment leaves behind: a page in Markdown, figures as SVG, data as CSV, and an index of all pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean

from windloom.model.formatting import number

#: A cell of a table or of a CSV file.
Cell = str | float | int | None
#: Whole numbers above this are written with separators.
_THOUSAND = 1000


class Skipped(Exception):  # noqa: N818, as nothing went wrong
    """Says what an experiment needs and does not have."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows under columns; goes to a page or to a file."""

    columns: tuple[str, ...]
    rows: Sequence[Sequence[Cell]]

    def markdown(self) -> str:
        lines = ["| " + " | ".join(self.columns) + " |", "|---" * len(self.columns) + "|"]
        lines += ["| " + " | ".join(_shown(cell) for cell in row) + " |" for row in self.rows]
        return "\n".join(lines)

    def csv(self) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.columns)
        writer.writerows([_exact(cell) for cell in row] for row in self.rows)
        return text.getvalue()


def _shown(cell: Cell) -> str:
    if cell is None:
        return "–"
    return cell if isinstance(cell, str) else number(cell)


def _exact(cell: Cell) -> str:
    if cell is None:
        return ""
    return f"{cell:.6g}" if isinstance(cell, float) else str(cell)


class Absent(Exception):  # noqa: N818, as nothing went wrong
    """Says which case a quick run has left out."""


class Data:
    """The data of an experiment as its files have them. Headlines and verdicts are computed from nothing else."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._rows = {file: list(csv.DictReader(io.StringIO(text))) for file, text in files.items()}

    @classmethod
    def read(cls, name: str, folder: Path) -> Data:
        """Return the data that an experiment has left in a folder: its files begin with its name."""
        return cls({path.name: path.read_text(encoding="utf-8") for path in (folder / "data").glob(f"{name}*.csv")})

    def rows(self, file: str, **where: str | float) -> list[dict[str, str]]:
        return [row for row in self._rows.get(file, []) if all(_is(row[key], value) for key, value in where.items())]

    def values(self, file: str, column: str, **where: str | float) -> list[float]:
        """A column of the rows that have these values, in their order; there is at least one."""
        found = [float(row[column]) for row in self.rows(file, **where) if row[column]]
        if not found:
            raise Absent(f"{file}: {column} where {where}")
        return found

    def value(self, file: str, column: str, **where: str | float) -> float:
        return fmean(self.values(file, column, **where))


def _is(cell: str, wanted: str | float) -> bool:
    return cell == wanted if isinstance(wanted, str) else cell != "" and float(cell) == float(_exact(wanted))


def spread(values: Sequence[float]) -> str:
    """A mean share with the lowest and the highest.

    >>> spread([0.5]), spread([0.25, 0.75])
    ('50%', '50% (25–75)')
    """
    span = f" ({100 * min(values):.0f}–{100 * max(values):.0f})" if len(values) > 1 else ""
    return f"{fmean(values):.0%}{span}"


#: What came of a figure or table of a source.
REPRODUCED, TREND, DIFFERS, NOT_RUN = "reproduced", "trend only", "differs", "not run"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A figure or table of a source: what it shows, what comes out here, how the two compare, and why so."""

    figure: str  # source and number: A fig. 8
    paper: str
    ours: str
    verdict: str
    reason: str = ""


def close(pairs: Sequence[tuple[float, float]], within: float) -> str:
    """Reproduced, if every value is as near to the paper's as this; the trend only, if not."""
    return REPRODUCED if all(abs(ours - paper) <= within for ours, paper in pairs) else TREND


@dataclass(frozen=True, slots=True)
class Figure:
    file: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Page:
    """The paper's claim, what came out here, and why the two differ where they do."""

    title: str
    settings: str
    claim: str
    findings: str
    difference: str
    figures: Sequence[Figure] = ()
    tables: Sequence[tuple[str, Table]] = ()
    data: dict[str, Table] = field(default_factory=dict)

    def markdown(self, name: str, headline: str) -> str:
        """The page under its headline, one line, which is also in the index."""
        parts = [f"# {self.title}", headline, f"`python -m experiments {name}` wrote this page.", "## Settings"]
        parts += [self.settings, "## The paper's claim", self.claim, "## What comes out here"]
        parts += [f"![{figure.caption}]({figure.file})\n\n*{figure.caption}*" for figure in self.figures]
        parts += [f"**{caption}**\n\n{table.markdown()}" for caption, table in self.tables]
        parts += [self.findings, "## Where they differ, and why", self.difference]
        if self.data:
            parts.append("Data: " + ", ".join(f"[{file}](data/{file})" for file in self.data))
        return "\n\n".join(part for part in parts if part) + "\n"


def write_page(name: str, page: Page, headline: str, folder: Path) -> None:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for file, table in page.data.items():
        (folder / "data" / file).write_text(table.csv(), encoding="utf-8")
    for figure in page.figures:
        (folder / figure.file).write_text(figure.svg, encoding="utf-8")
    (folder / f"{name}.md").write_text(page.markdown(name, headline), encoding="utf-8")
