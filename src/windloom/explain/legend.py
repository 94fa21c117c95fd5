"""The bottom of the picture: what is not drawn, and what lines, dots and colours mean."""

from __future__ import annotations

from windloom.explain.blocks import MARGIN, SET_X, WIDTH, Layout
from windloom.explain.canvas import FAINT, INK, PAPER, RULE, Canvas
from windloom.model.figures import count
from windloom.plan.physical import Plan

_HEIGHT = 48.0


def draw_legend(canvas: Canvas, plan: Plan, layout: Layout) -> float:
    """Draws below everything else and returns the height of the whole picture."""
    y = _hidden_joins(canvas, layout, _hidden_sets(canvas, layout, layout.height + 8.0))
    canvas.line(MARGIN, y, layout.width - MARGIN, y, RULE)
    x, middle = MARGIN, y + 24
    canvas.path(f"M{x + 4} {middle - 7}v14M{x + 16} {middle - 7}v14", INK, 1.4)
    x = _text(canvas, x + 28, middle, "edge: a slice begins, to scale")
    if any(tree.marks.classes for tree in plan.trees):
        canvas.dot(x + 5, middle, 2.4, PAPER, extra=f' stroke="{INK}"')
        x = _text(canvas, x + 16, middle, "mark: a window ends inside a slice")
    canvas.line(x, middle, x + 30, middle, INK, 2, extra=' stroke-opacity="0.55"')
    canvas.line(x, middle - 3.5, x, middle + 3.5, INK, 1.4)
    canvas.dot(x + 30, middle, 3, INK)
    x = _text(canvas, x + 42, middle, "window from slide (tick) to range (dot), log scale")
    for step, colour in enumerate(("#2563eb", "#d97706", "#059669")):
        canvas.rect(x + 9 * step, middle - 5, 8, 10, colour, radius=2)
    x = _text(canvas, x + 36, middle, "colour: tree")
    canvas.line(x, middle - 4, x + 26, middle - 4, "#cbd5e1", 2)
    canvas.line(x, middle + 4, x + 26, middle + 4, "#cbd5e1", 7)
    x = _text(canvas, x + 34, middle, "thicker: more events/s or edges/s, log scale")
    _text(canvas, x, middle, "sum(x) ×3: a partial asked for by 3 queries")
    return y + _HEIGHT


def _hidden_sets(canvas: Canvas, layout: Layout, y: float) -> float:
    hidden = layout.hidden_sets
    if not hidden:
        return y
    trees = count(sum(len(partial_set.trees) for partial_set in hidden), "tree")
    queries = count(sum(len(tree.queries) for partial_set in hidden for tree in partial_set.trees), "query", "queries")
    text = f"+ {count(len(hidden), 'more set')} with {trees} and {queries}, not drawn: EXPLAIN as text has them"
    canvas.text(SET_X, y + 8, text, 12, FAINT, room=WIDTH - SET_X - MARGIN, bold=True)
    return y + 26


def _hidden_joins(canvas: Canvas, layout: Layout, y: float) -> float:
    if not layout.hidden_joins:
        return y
    text = f"+ {count(len(layout.hidden_joins), 'more join')}, not drawn: EXPLAIN as text has them"
    canvas.text(SET_X, y + 8, text, 12, FAINT, room=WIDTH - SET_X - MARGIN, bold=True)
    return y + 26


def _text(canvas: Canvas, x: float, middle: float, text: str) -> float:
    return x + canvas.text(x, middle + 4, text, 10.5, FAINT, room=WIDTH - MARGIN - x) + 24
