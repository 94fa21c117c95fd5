"""What an experiment leaves behind: a page in Markdown, figures as SVG, data as CSV, and an index of all pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class Figure:
    file: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Page:
    """The paper's claim, what came out here, and why the two differ where they do."""

    title: str
    summary: str  # one line, also in the index
    settings: str
    claim: str
    findings: str
    difference: str
    figures: Sequence[Figure] = ()
    tables: Sequence[tuple[str, Table]] = ()
    data: dict[str, Table] = field(default_factory=dict)

    def markdown(self, name: str) -> str:
        parts = [f"# {self.title}", self.summary, f"`python -m experiments {name}` wrote this page.", "## Settings"]
        parts += [self.settings, "## The paper's claim", self.claim, "## What comes out here"]
        parts += [f"![{figure.caption}]({figure.file})\n\n*{figure.caption}*" for figure in self.figures]
        parts += [f"**{caption}**\n\n{table.markdown()}" for caption, table in self.tables]
        parts += [self.findings, "## Where they differ, and why", self.difference]
        if self.data:
            parts.append("Data: " + ", ".join(f"[{file}](data/{file})" for file in self.data))
        return "\n\n".join(part for part in parts if part) + "\n"


def write_page(name: str, page: Page, folder: Path) -> None:
    (folder / "data").mkdir(parents=True, exist_ok=True)
    for file, table in page.data.items():
        (folder / "data" / file).write_text(table.csv(), encoding="utf-8")
    for figure in page.figures:
        (folder / figure.file).write_text(figure.svg, encoding="utf-8")
    (folder / f"{name}.md").write_text(page.markdown(name), encoding="utf-8")


def write_index(names: Sequence[str], folder: Path) -> None:
    """Of the pages that are there: an experiment may have been skipped."""
    lines = [
        "# Experiments",
        "",
        "The experiments of the papers behind [sharing](../sharing.md) and frequent items, repeated with Windloom's "
        "own",
        "strategies and techniques. Source A is Weave Share (Guirguis et al.), source C incremental evaluation in "
        "multi-query",
        "plans (Shein and Chrysanthis), source B charts of plans (OM, Kulkarni and Ravishankar), source D aggregation",
        "below joins (Tran and Lee), source E sliding-window queries (Golab). Plans are seeded and come out the same",
        "everywhere; times are those of the machine they were measured on. `make experiments` writes everything here "
        "anew;",
        "`make experiments ARGS=--quick` tries it on few and small cases and writes to `build`.",
        "",
        "| page | what came out |",
        "|---|---|",
    ]
    if folder.name != "experiments" or folder.parent.name != "docs":
        lines[2] = lines[2].replace("[sharing](../sharing.md)", "sharing")
    for name in names:
        path = folder / f"{name}.md"
        if path.exists():
            title, _, summary = path.read_text(encoding="utf-8").split("\n")[:3]
            lines.append(f"| [{title.removeprefix('# ')}]({name}.md) | {summary} |")
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")
