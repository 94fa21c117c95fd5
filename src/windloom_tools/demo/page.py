"""The page around a report: self-contained HTML, readable on a phone and on paper."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from windloom.errors import WindloomError
from windloom.explain.picture.canvas import FAINT, FONT, INK, PAPER, RULE, WASH, legal
from windloom.model.formatting import number

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One key figure: a large `value`, its label above it, and a note below it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """`body` is markup made by this package, and is not escaped; `text` is plain text, and is escaped.

    An empty line in `text` begins a new paragraph.
    """

    title: str
    body: str
    text: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    title: str
    subtitle: str
    facts: tuple[Fact, ...] = ()
    sections: tuple[Section, ...] = ()


#: Drawings wider than this keep their size on narrow screens and scroll.
_WIDE_PIXELS = 1_000


def write_report(path: str | os.PathLike[str], report: Report) -> Path:
    """Writes the report as one file, completely or not at all, and returns its path."""
    target = Path(path)
    beside = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(report_html(report), encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise WindloomError(
            f"cannot write the report to '{target}'", str(error.strerror or error), "choose a place that can be written"
        ) from None
    return target


def report_html(report: Report) -> str:
    sections = [_ShownSection.of(section) for section in report.sections]
    return str(_templates().get_template("report.html.jinja").render(report=report, sections=sections))


def facts_html(facts: Iterable[Fact]) -> str:
    """Key figures as a row of cards."""
    return str(_parts().facts(list(facts)))


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """A table of escaped cells; columns of numbers are aligned right, and booleans are shown as ✓ and ✗."""
    every = [list(row) for row in rows]
    columns = [
        {
            "name": name,
            "is_right": any(_is_number(row[i]) for row in every)
            and all(_is_number(row[i]) or row[i] is None for row in every),
        }
        for i, name in enumerate(headers)
    ]
    return str(_parts().table(columns, every))


@dataclass(frozen=True, slots=True)
class _ShownSection:
    """A section as the template reads it."""

    title: str
    paragraphs: tuple[str, ...]
    body: Markup
    is_drawing: bool
    is_wide: bool

    @classmethod
    def of(cls, section: Section) -> _ShownSection:
        paragraphs = tuple(part for part in section.text.split("\n\n") if part.strip())
        # Drawings get a frame that scrolls sideways, so that a phone does not shrink them until they are unreadable.
        is_drawing = section.body.lstrip().startswith("<svg")
        width = section.body.partition('width="')[2].partition('"')[0]
        is_wide = not is_drawing or float(width or 0) > _WIDE_PIXELS
        return cls(section.title, paragraphs, Markup(section.body), is_drawing, is_wide)


@lru_cache(maxsize=1)
def _templates() -> Environment:
    """The templates of this package; they escape every value that is not markup."""
    made = Environment(
        loader=PackageLoader("windloom_tools.demo"),
        autoescape=True,
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        finalize=_legal,
    )
    made.globals.update(ink=INK, faint=FAINT, rule=RULE, wash=WASH, paper=PAPER, font=Markup(FONT))
    made.filters["figure"] = _figure
    return made


def _parts() -> Any:
    return _templates().get_template("parts.html.jinja").module


def _legal(value: object) -> object:
    return legal(value) if type(value) is str else value


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _figure(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, int):
        return f"{cell:,}"
    return number(cell) if isinstance(cell, float) else cell
