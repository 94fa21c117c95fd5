"""The page around a report: self-contained HTML, readable on a phone and on paper."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from windloom.errors import WindloomError
from windloom.explain.canvas import FAINT, FONT, INK, PAPER, RULE, WASH, escape
from windloom.model.figures import number

Cell = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Fact:
    """One key figure: `value` large, what it is above, where it comes from below."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """`body` is markup and goes in as it is, from the functions of this package; `text` is plain, and escaped.

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


_CSS = f"""
:root {{ color-scheme: light; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0; background: #f4f6f9; color: {INK}; font: 16px/1.55 {FONT}; }}
main {{ max-width: 1440px; margin: 0 auto; padding: 40px 24px 64px; }}
header {{ margin: 0 0 28px; }}
h1 {{ margin: 0 0 6px; font-size: clamp(26px, 4vw, 38px); line-height: 1.15; letter-spacing: -0.02em; }}
h2 {{ margin: 0 0 6px; font-size: 20px; letter-spacing: -0.01em; }}
p {{ margin: 0 0 14px; max-width: 76ch; overflow-wrap: anywhere; }}
.subtitle, .note, section > p {{ color: {FAINT}; }}
.facts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 14px; margin: 0 0 24px; }}
.fact, section {{ background: {PAPER}; border: 1px solid {RULE}; border-radius: 12px; }}
.fact {{ padding: 16px 18px; min-width: 0; overflow-wrap: anywhere; }}
.fact dt {{ font-size: 13px; color: {FAINT}; }}
.fact dd {{ margin: 2px 0 0; }}
.value {{ font-size: 27px; font-weight: 650; letter-spacing: -0.02em; line-height: 1.2; }}
.note {{ font-size: 13px; }}
.sections {{ display: grid; gap: 20px; grid-template-columns: repeat(auto-fit, minmax(min(100%, 560px), 1fr)); }}
section {{ padding: 24px; min-width: 0; }}
section.wide {{ grid-column: 1 / -1; }}
.figure {{ overflow-x: auto; }}
.figure svg {{ display: block; width: 100%; height: auto; min-width: 520px; max-width: 1000px; }}
.figure.wide svg {{ min-width: 1200px; max-width: none; }}
table {{ border-collapse: collapse; width: 100%; font-size: 14px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 7px 12px; text-align: left; border-bottom: 1px solid {RULE}; vertical-align: top; }}
th {{ color: {FAINT}; font-weight: 600; background: {WASH}; white-space: nowrap; }}
tr:last-child td {{ border-bottom: 0; }}
.right {{ text-align: right; }}
.yes {{ color: #047857; }} .no {{ color: #b91c1c; font-weight: 600; }}
footer {{ margin: 24px 0 0; color: {FAINT}; font-size: 13px; }}
@media (max-width: 640px) {{ main {{ padding: 24px 12px 40px; }} section {{ padding: 16px 14px; }} }}
@media print {{
  @page {{ margin: 14mm; }}
  body {{ background: {PAPER}; font-size: 11pt; print-color-adjust: exact; -webkit-print-color-adjust: exact; }}
  main {{ max-width: none; padding: 0; }}
  .sections {{ display: block; }}
  section {{ margin: 0 0 6mm; }}
  section, .fact {{ break-inside: avoid; }}
  .figure {{ overflow: visible; }}
  .figure svg, .figure.wide svg {{ min-width: 0; max-height: 240mm; }}
}}
"""
#: Drawings wider than this keep their size on narrow screens and scroll.
_WIDE_PIXELS = 1_000


def write_report(path: str | os.PathLike[str], report: Report) -> Path:
    """Writes the report as one file, whole or not at all, and returns where."""
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
    sections = "\n".join(_section(one) for one in report.sections)
    subtitle = f'<p class="subtitle">{escape(report.subtitle)}</p>' if report.subtitle else ""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{escape(report.title)}</title>
<style>{_CSS}</style>
</head>
<body>
<main>
<header><h1>{escape(report.title)}</h1>{subtitle}</header>
{facts_html(report.facts)}
<div class="sections">
{sections}
</div>
<footer>Written by Windloom.</footer>
</main>
</body>
</html>
"""


def facts_html(facts: Iterable[Fact]) -> str:
    """Key figures as a row of cards."""
    cards = []
    for fact in facts:
        note = f'<div class="note">{escape(fact.note)}</div>' if fact.note else ""
        value = f'<div class="value">{escape(fact.value)}</div>'
        cards.append(f'<div class="fact"><dt>{escape(fact.label)}</dt><dd>{value}{note}</dd></div>')
    return f'<dl class="facts">{"".join(cards)}</dl>' if cards else ""


def _section(section: Section) -> str:
    paragraphs = "".join(f"<p>{escape(part)}</p>" for part in section.text.split("\n\n") if part.strip())
    body, wide = section.body, " wide"
    if body.lstrip().startswith("<svg"):
        # Drawings get a frame that scrolls sideways, so that a phone does not shrink them past reading.
        width = body.partition('width="')[2].partition('"')[0]
        wide = " wide" if float(width or 0) > _WIDE_PIXELS else ""
        body = f'<div class="figure{wide}">{body}</div>'
    return f'<section class="part{wide}"><h2>{escape(section.title)}</h2>{paragraphs}{body}</section>'


def table(headers: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Rows of cells, all escaped; columns of numbers are aligned right, truth is shown as ✓ and ✗."""
    every = [list(row) for row in rows]
    right = [
        any(_is_number(row[i]) for row in every) and all(_is_number(row[i]) or row[i] is None for row in every)
        for i in range(len(headers))
    ]
    head = "".join(
        f"<th{_aligned(is_right)}>{escape(text)}</th>" for text, is_right in zip(headers, right, strict=True)
    )
    lines = []
    for row in every:
        cells = "".join(_cell(cell, is_right) for cell, is_right in zip(row, right, strict=True))
        lines.append(f"<tr>{cells}</tr>")
    body = "\n".join(lines)
    return f'<div class="figure"><table><thead><tr>{head}</tr></thead><tbody>\n{body}\n</tbody></table></div>'


def _is_number(cell: Cell) -> bool:
    return isinstance(cell, int | float) and not isinstance(cell, bool)


def _aligned(right: bool) -> str:
    return ' class="right"' if right else ""


def _cell(cell: Cell, right: bool) -> str:
    if isinstance(cell, bool):
        return '<td class="yes">✓</td>' if cell else '<td class="no">✗</td>'
    if cell is None:
        text = ""
    elif isinstance(cell, int):
        text = f"{cell:,}"
    else:
        text = number(cell) if isinstance(cell, float) else cell
    return f"<td{_aligned(right)}>{escape(text)}</td>"
