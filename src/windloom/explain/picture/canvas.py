"""A sheet to draw on: SVG elements with escaped, measured text, and no references to outside the file.

Every coordinate is absolute and every colour explicit, so a picture looks the same on light and dark pages.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from unicodedata import combining, east_asian_width
from xml.sax.saxutils import escape as escape_markup
from xml.sax.saxutils import quoteattr

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', 'DejaVu Sans', Arial, sans-serif"
INK = "#1f2937"
FAINT = "#6b7280"
RULE = "#d5dae1"
WASH = "#eef1f5"
PAPER = "#ffffff"
#: Colours of trees and of series, in turn: dark enough for text on paper, and distinct for colour-blind readers.
PALETTE = ("#2563eb", "#d97706", "#059669", "#c026d3", "#dc2626", "#0891b2", "#7c3aed", "#65a30d", "#92400e", "#475569")
#: Widths of letters in em: those of DejaVu Sans, the widest of the fonts above, so that no other overflows.
_WIDTHS = {
    0.3: "'Iijl",
    0.35: " ,./:;\\|·",
    0.4: "()-[]ft",
    0.45: "!r",
    0.5: '"*J`',
    0.55: "csz",
    0.6: "?L_kvxy–",
    0.65: "$0123456789FTabdeghnopqu{}µ",
    0.7: "ABEKPSVXYZ",
    0.75: "CNRU",
    0.8: "&DGHOQ",
    0.85: "#+<=>^w~≈×−∞≤✓✗",
    0.9: "M",
    1.0: "%Wm→…",
    1.05: "@",
}
_EM = {letter: width for width, letters in _WIDTHS.items() for letter in letters}
_BOLD = 1.12


@lru_cache(maxsize=4_096)
def text_width(text: str, size: float, bold: bool = False) -> float:
    """Return the most pixels that the text takes, whatever sans-serif font the reader has."""

    em = sum(
        _EM.get(letter)
        or (0.0 if combining(letter) else 1.1 if east_asian_width(letter) in "WF" or ord(letter) > 0xFFFF else 0.85)
        for letter in text
    )
    return em * size * (_BOLD if bold else 1.0)


def fit(text: str, room: float, size: float, bold: bool = False) -> str:
    """Return the text, cut with an ellipsis if it does not fit.

    >>> fit("a rather long name", 60, 10)
    'a rather l…'
    """
    text = " ".join(text.split())
    if text_width(text, size, bold) <= room:
        return text
    lengths = range(1, len(text) + 1)
    fitting = bisect_right(lengths, room, key=lambda end: text_width(text[:end].rstrip() + "…", size, bold))
    return text[:fitting].rstrip() + "…"


def escape(text: str) -> str:
    """Return text to put between tags; characters that XML forbids become �.

    >>> escape("a < b & c" + chr(0))
    'a &lt; b &amp; c�'
    """
    return escape_markup(legal(text))


def legal(text: str) -> str:
    """Return the text with � for every character that XML forbids."""
    return re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "�", text)


def shown(value: float) -> str:
    """Return a coordinate, as short as a tenth of a pixel allows."""
    return f"{value:.1f}".removesuffix(".0")


class Canvas:
    """Collects the elements of a drawing, and writes them as one SVG file."""

    def __init__(self) -> None:
        self._parts: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        *,
        radius: float = 0,
        stroke: str = "",
        extra: str = "",
    ) -> None:
        corners = f' rx="{shown(radius)}"' if radius else ""
        outline = f' stroke="{stroke}"' if stroke else ""
        self._parts.append(
            f'<rect x="{shown(x)}" y="{shown(y)}" width="{shown(width)}" height="{shown(height)}"{corners} '
            f'fill="{fill}"{outline}{extra}/>'
        )

    def path(self, data: str, stroke: str, width: float = 1, *, extra: str = "") -> None:
        self._parts.append(f'<path d="{data}" fill="none" stroke="{stroke}" stroke-width="{shown(width)}"{extra}/>')

    def line(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, *, extra: str = ""
    ) -> None:
        self.path(f"M{shown(x1)} {shown(y1)}L{shown(x2)} {shown(y2)}", stroke, width, extra=extra)

    def curve(
        self, x1: float, y1: float, x2: float, y2: float, stroke: str, width: float = 1, *, extra: str = ""
    ) -> None:
        """Draw a curve from left to right that leaves and arrives horizontally."""
        middle = shown((x1 + x2) / 2)
        data = f"M{shown(x1)} {shown(y1)}C{middle} {shown(y1)} {middle} {shown(y2)} {shown(x2)} {shown(y2)}"
        self.path(data, stroke, width, extra=extra)

    def dot(self, x: float, y: float, radius: float, fill: str, *, extra: str = "") -> None:
        self._parts.append(f'<circle cx="{shown(x)}" cy="{shown(y)}" r="{shown(radius)}" fill="{fill}"{extra}/>')

    def text(
        self,
        x: float,
        y: float,
        content: str,
        size: float,
        fill: str = INK,
        *,
        room: float,
        anchor: str = "start",
        bold: bool = False,
        halo: bool = False,
    ) -> float:
        """Write what fits in `room`, and return its width; a halo keeps it readable over lines."""
        cut = fit(content, room, size, bold)
        align = "" if anchor == "start" else f' text-anchor="{anchor}"'
        weight = ' font-weight="600"' if bold else ""
        around = f' stroke="{PAPER}" stroke-width="3" stroke-linejoin="round" paint-order="stroke"' if halo else ""
        self._parts.append(
            f'<text x="{shown(x)}" y="{shown(y)}" font-size="{shown(size)}" fill="{fill}"{align}{weight}{around}>'
            f"{escape(cut)}</text>"
        )
        return text_width(cut, size, bold)

    @contextmanager
    def group(self, title: str = "", css: str = "") -> Iterator[None]:
        """Put elements into a group that shows `title` when the pointer rests on it."""
        mark = f' class="{css}"' if css else ""
        self._parts.append(f"<g{mark}>" + (f"<title>{escape(title)}</title>" if title else ""))
        yield
        self._parts.append("</g>")

    def document(self, width: float, height: float, title: str, *, style: str = "") -> str:
        """Return a complete, self-contained SVG file that scales with its container."""
        size = f'width="{shown(width)}" height="{shown(height)}" viewBox="0 0 {shown(width)} {shown(height)}"'
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img" aria-label={quoteattr(legal(title))} '
            f"font-family={quoteattr(FONT)}>"
        )
        rules = f"<style>{style}</style>" if style else ""
        paper = f'<rect width="{shown(width)}" height="{shown(height)}" fill="{PAPER}"/>'
        return "\n".join([head + rules + paper, *self._parts, "</svg>"]) + "\n"
