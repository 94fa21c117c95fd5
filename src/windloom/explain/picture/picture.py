"""EXPLAIN as a picture: streams → scans → slices → trees → queries → joins, from left to right, as one SVG file.

The layout decides where everything is. Cards are drawn in one way: a name, a note beside it, and lines below them; what
a reader sees when pointing at a card is the node of EXPLAIN's tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from windloom.explain import words
from windloom.explain.costs import CostView
from windloom.explain.joins import joined_text
from windloom.explain.node import node_title
from windloom.explain.picture import layout
from windloom.explain.picture.canvas import FAINT, INK, PAPER, RULE, WASH, Canvas, text_width
from windloom.explain.picture.layout import (
    MARGIN,
    SET_X,
    TOP,
    WIDTH,
    Box,
    JoinBlock,
    Row,
    SetBlock,
    StreamBlock,
    TreeBlock,
)
from windloom.explain.picture.strips import TimeAxis, draw_strip, draw_window
from windloom.explain.rows import relation_card
from windloom.explain.scans import scan_notes, scan_way
from windloom.explain.tree import plan_tree
from windloom.explain.words import measure_of, one_line, output_text
from windloom.model.formatting import amount, count
from windloom.model.stream import EnrichedStream, Stream
from windloom.plan.joins import early_sides, plan_name
from windloom.plan.plan import Plan, Tree

_STYLE = ".wl-q:hover .wl-hit{fill-opacity:.07}.wl-q:hover .wl-thread{stroke-opacity:1;stroke-width:2.5}"
_THREAD = ' class="wl-thread" stroke-opacity="0.5"'
#: The colour of threads of tuples.
_READ = "#cbd5e1"
#: The heights of the lines of a card, below its name.
_LINES = (19.0, 35.0, 51.0, 66.0)
#: The part of a card's width that a note may take.
_NOTE = 0.72
_SOURCES = ("streams", "relations", "enriched")


def explain_svg(plan: Plan, costs: CostView) -> str:
    """Return the plan as a self-contained SVG file; pointing at a part shows its details."""
    return _Picture(plan, costs).draw()


class _Picture:
    def __init__(self, plan: Plan, costs: CostView) -> None:
        self.plan, self.costs, self.canvas = plan, costs, Canvas()
        self.layout = layout.lay_out(plan)
        tree = plan_tree(plan, costs)
        self.head = [*tree["strategy"].lines, *tree["cost"].lines]
        parts = tree.children
        self.sources = {node["name"].value: node for kind in _SOURCES for node in parts[kind]}
        self.scans = {node["number"].value: node for node in parts["scans"]}
        self.sets = {node["number"].value: node for node in parts["sets"]}
        self.joins = {node["name"].value: node for node in parts["joins"]}
        trees = [tree for node in parts["sets"] for tree in node.children["trees"]]
        self.queries = {query.name: query for tree in trees for query in tree.children["queries"]}
        self.axis = TimeAxis.of(planned.query.window for planned in plan.queries)

    def draw(self) -> str:
        title = self._draw_head()
        if any(self.plan.queries):
            self.axis.draw(self.canvas, TOP - 14.0, self.layout.height)
        for stream in self.layout.streams:  # lines first, so that cards and labels lie on top of them
            self._draw_threads(stream)
        for stream in self.layout.streams:
            for block in stream.scans:
                scan = block.scan
                with self.canvas.group(node_title(self.scans[scan.number])):
                    self._draw_box(block.card, WASH, "#94a3b8")
                    self._write(block.card, f"scan {scan.number}", scan_way(scan), scan_notes(scan))
            for own in stream.sets:
                self._draw_set(own)
            with self.canvas.group(node_title(self.sources[stream.stream.name])):
                self._draw_stream(stream.stream, stream.card)
        for join in self.layout.joins:
            self._draw_join(join)
        height = self._draw_legend()
        return self.canvas.document(self.layout.width, height, title, style=_STYLE)

    def _draw_box(self, box: Box, fill: str, stroke: str = "", *, radius: float = 8, extra: str = "") -> None:
        self.canvas.rect(box.x, box.y, box.width, box.height, fill, radius=radius, stroke=stroke, extra=extra)

    def _write(
        self, box: Box, name: str, note: str, lines: Sequence[str], inks: Sequence[str] = (INK, INK, FAINT)
    ) -> None:
        """Write a card's name, a note in the other corner, and lines below; `inks` are for name, first and rest."""
        x, y, room = box.x + 14, box.y + 24, box.width - 28
        if note:
            room -= 8 + self.canvas.text(box.right - 14, y, note, 11, FAINT, room=room * _NOTE, anchor="end")
        self.canvas.text(x, y, one_line(name), 13, inks[0], room=room, bold=True)
        for place, (line, below) in enumerate(zip(lines, _LINES, strict=False)):
            size, ink = (10.5, inks[2]) if place else (11, inks[1])
            self.canvas.text(x, y + below, one_line(line), size, ink, room=box.width - 28)

    def _draw_head(self) -> str:
        canvas, drawn, room = self.canvas, self.layout, self.layout.width - 2 * MARGIN
        queries, trees = sum(1 for _ in self.plan.queries), sum(1 for _ in self.plan.trees)
        read = count(len(self.plan.streams), "stream")
        read += f" and {count(len(self.plan.relations), 'relation')}" if self.plan.relations else ""
        woven = f"{'woven into' if trees < queries else 'in'} {count(trees, 'tree')}"
        title = f"{count(queries, 'query', 'queries')} over {read}, {woven}"
        canvas.text(MARGIN, 44, title, 20, room=room, bold=True)
        canvas.text(MARGIN, 68, "  ·  ".join(self.head), 12.5, FAINT, room=room)
        trees_x = [tree.card.x for stream in drawn.streams for own in stream.sets for tree in own.trees]
        columns = {"STREAMS": layout.STREAM_X, "SCANS": layout.SCAN_X, "SLICES": SET_X}
        columns |= {"TREES": min([layout.TREE_X, *trees_x]), "QUERIES": layout.QUERY_X}
        for name, x in (columns | ({"JOINS": layout.JOIN_X} if drawn.joins else {})).items():
            canvas.text(x, TOP - 19.0, name, 10.5, FAINT, room=120, bold=True)
        return title

    def _draw_threads(self, block: StreamBlock) -> None:
        is_relation = block.stream.is_relation
        width = 1.5 if is_relation else _thickness(self.plan.rate_of(block.stream)[0])
        pairs = [(block.card, own.card) for own in block.sets] if is_relation else []
        pairs += [(block.card, scan.card) for scan in block.scans]
        pairs += [(scan.card, fed.card) for scan in block.scans for fed in scan.sets]
        for left, right in pairs:
            self.canvas.curve(left.right - 4, left.middle, right.x, right.middle, _READ, width)
        for own in block.sets:
            for tree in own.trees:
                members = tree.hidden if tree.tree is None else (tree.tree,)
                width = _thickness(max(measure_of(own.partial_set).rate(each.edges) for each in members))
                ends = own.card.right, own.card.middle, tree.card.x, tree.card.middle
                self.canvas.curve(*ends, tree.colour, width, extra=' stroke-opacity="0.38"')

    def _draw_stream(self, stream: Stream, box: Box) -> None:
        if stream.is_relation:
            planned = next(relation for relation in self.plan.relations if relation.name == stream.name)
            colour, lines = "#115e59", relation_card(planned)
        else:
            colour, (rate, origin) = "#334155", self.plan.rate_of(stream)
            events = amount(rate, "event/s", "events/s")
            if isinstance(stream, EnrichedStream):
                lines = [stream.base, "+ " + ", ".join(stream.relations), "joined as tuples come", events]
            else:
                windows = self.sources[stream.name]["windows_per_tuple"].value
                lines = [stream.name, events, origin.source, f"{amount(windows, 'window')} per tuple"]
        self._draw_box(box, colour)
        self._write(box, lines[0], "", lines[1:], (PAPER, "#e2e8f0", "#cbd5e1"))

    def _draw_join(self, block: JoinBlock) -> None:
        planned, box = block.join, block.card
        early = plan_name(early_sides(self.plan, planned))
        lines = [joined_text(planned.join), f"{early} · {planned.fold}", output_text(planned.query)]
        with self.canvas.group(node_title(self.joins[planned.name]), "wl-q"):
            for number, thread in enumerate(block.threads):
                y = box.y + box.height * (number + 1) / (len(block.threads) + 1)
                self.canvas.curve(thread.x, thread.y, box.x, y, thread.colour, 1.6, extra=_THREAD)
            self._draw_box(box, PAPER, INK)
            self._write(box, planned.name, planned.query.window.short, lines)

    def _draw_set(self, block: SetBlock) -> None:
        canvas, partial_set, box = self.canvas, block.partial_set, block.card
        for number, tree in enumerate(block.trees):
            self._draw_tree(block, tree, number)
        node = self.sets[partial_set.number]
        where = node["where"].first_line if partial_set.where is None else f"where {one_line(partial_set.where.sql)}"
        groups = f"by {words.grouping(partial_set)}" if partial_set.group_by else "not grouped"
        groups += "" if (counted := words.counting(partial_set)) is None else f", {counted}"
        slices = words.cut_text(partial_set, partial_set.edges)
        how = words.slice_id_text(partial_set.slice_id, measure_of(partial_set)) if partial_set.window.is_sliced else ""
        with canvas.group(node_title(node)):
            self._draw_box(box, PAPER, RULE)
            self._write(box, f"set {partial_set.number}", slices, [f"{where} · {groups}"])
            for chip in block.chips:
                canvas.rect(chip.x, chip.y, chip.width, layout.CHIP_HEIGHT, WASH, radius=layout.CHIP_HEIGHT / 2)
                centre = chip.x + chip.width / 2
                canvas.text(centre, chip.y + 12.7, chip.text, layout.CHIP_SIZE, room=chip.width - 13.9, anchor="middle")
            if partial_set.window.is_sliced:
                draw_strip(canvas, block)
            bottom, room = block.strip_y + layout.strip_height(len(partial_set.trees)) + 32.0, box.width - 28
            cost, has_parts, _ = self.costs.set_fact(partial_set).first_line.partition(" = ")
            if has_parts:
                text = f"cost {cost}"
                room -= 14 + canvas.text(box.right - 14, bottom, text, 10.5, INK, room=room / 2, anchor="end")
            if text_width(how, 10.5) > room:
                how = how.partition(":")[0]
            canvas.text(box.x + 14, bottom, how, 10.5, FAINT, room=room)

    def _draw_tree(self, owner: SetBlock, block: TreeBlock, number: int) -> None:
        canvas, box, tree = self.canvas, block.card, block.tree
        for row in block.rows:
            self._draw_row(block, row)
        if block.rest:
            self._draw_rest(owner, block)
        cost = self.costs.trees_text(owner.partial_set, block.hidden if tree is None else [tree])
        if tree is None:
            with canvas.group(f"{block.name[2:]} not drawn one by one, cost {cost}"):
                self._draw_box(box, PAPER, block.colour, radius=6, extra=' stroke-dasharray="4 3"')
                self._write_line(block, FAINT, cost)
            return
        rate = words.rate_text(owner.partial_set, tree.edges)
        with canvas.group(node_title(self.sets[owner.partial_set.number].children["trees"][number])):
            self._draw_box(box, PAPER, block.colour, radius=6)
            canvas.rect(box.x, box.y, 5, box.height, block.colour, radius=2)
            if box.height < 40:
                self._write_line(block, block.colour, cost, rate)
                return
            first, *others = layout.used_techniques(owner.partial_set, tree)
            lines = [f"cost {cost}", self.costs.card_text(owner.partial_set, tree), first, ", ".join(others)]
            queries = count(len(tree.queries), "query", "queries")
            self._write(box, block.name, queries, lines if others else lines[:3], (block.colour, INK, FAINT))
            canvas.text(box.x - 8, box.middle - 8, rate, 10.5, block.colour, room=104, anchor="end", halo=True)

    def _write_line(self, block: TreeBlock, ink: str, cost: str, rate: str = "") -> None:
        """Write the only line of a tree that is drawn small, or of several: a name, a rate of edges, and a cost."""
        canvas, box, y = self.canvas, block.card, block.card.middle + 4
        canvas.text(box.right - 10, y, cost, 10.5, FAINT, room=82 if rate else 104, anchor="end")
        if rate:
            canvas.text(box.right - 96, y, rate, 10.5, FAINT, room=104, anchor="end")
        canvas.text(box.x + 12, y, block.name, 11.5, ink, room=74 if rate else box.width - 136, bold=True)

    def _draw_row(self, block: TreeBlock, row: Row) -> None:
        canvas, box, first = self.canvas, row.box, row.queries[0]
        x, y, window = box.x + 4, layout.row_middle(row, self.layout.roomy), first.query.window
        lines: list[str] = []
        for planned in row.queries[:8]:
            node = self.queries[planned.name]
            lines.append(f"{one_line(node.name)}  {window}")
            lines += [node["answer"].first_line, node["shares"].first_line]
        if rest := [one_line(planned.name) for planned in row.queries[8:]]:
            lines.append(f"and {len(rest):,} more: {', '.join(rest)}")
        with canvas.group("\n".join(lines), "wl-q"):
            ends = block.card.right, block.card.middle, box.x - 8, y
            canvas.curve(*ends, block.colour, 1.2, extra=_THREAD)
            hit = ' class="wl-hit" fill-opacity="0"'
            canvas.rect(box.x - 8, box.y, box.width + 12, box.height, block.colour, radius=3, extra=hit)
            canvas.dot(box.x - 5, y, 2.6, block.colour)
            more = f" +{len(row.queries) - 1:,}" if len(row.queries) > 1 else ""
            room = layout.NAME_WIDTH - 8 - text_width(more, 11.5)
            used = canvas.text(x, y + 4, one_line(first.name), 11.5, room=room)
            if more:
                canvas.text(x + used, y + 4, more, 11.5, FAINT, room=layout.NAME_WIDTH)
            canvas.text(box.x + layout.NAME_WIDTH, y + 4, window.short, 10.5, FAINT, room=layout.WINDOW_WIDTH)
            if self.layout.roomy:
                canvas.text(x, y + 18, output_text(first.query), 10, FAINT, room=self.axis.left - box.x - 14)
            if not window.is_version:
                draw_window(canvas, self.axis, window, y, block.colour, 12)

    def _draw_rest(self, owner: SetBlock, block: TreeBlock) -> None:
        """Draw queries without a name of their own: a thin line each, or for every n-th if they are too many."""
        canvas, box, rest = self.canvas, block.rest_box, block.rest
        lines, pitch = layout.rest_lines(rest)
        x, y, room = box.x + 4, box.y + 12 + lines * pitch / 2, layout.NAME_WIDTH + layout.WINDOW_WIDTH - 20
        ends = block.card.right, block.card.middle, box.x - 8, y
        canvas.curve(*ends, block.colour, min(24.0, 3.0 + len(rest) / 20), extra=' stroke-opacity="0.22"')
        canvas.rect(box.x - 8, box.y + 12, 3, max(4.0, lines * pitch), block.colour, extra=' fill-opacity="0.5"')
        more = f"+ {len(rest):,} more" if block.rows else count(len(rest), "query", "queries")
        canvas.text(x, y + 1, more, 12, block.colour, room=room, bold=True)
        measure = measure_of(owner.partial_set)
        ranges = [planned.query.window.range_ticks for planned in rest]
        span = f"ranges {measure.short(min(ranges))} to {measure.short(max(ranges))}"
        drawn = "" if lines == len(rest) else f", {lines} of them drawn"
        canvas.text(x, y + 16, span + drawn, 10.5, FAINT, room=room + 12)
        for line in range(lines):
            start, end = line * len(rest) // lines, (line + 1) * len(rest) // lines
            titles = [
                f"{one_line(planned.name)}  {planned.query.window}  {output_text(planned.query)}"
                for planned in rest[start:end]
            ]
            with canvas.group("\n".join(titles)):
                y = box.y + 12 + (line + 0.5) * pitch
                draw_window(canvas, self.axis, rest[start].query.window, y, block.colour, pitch)

    def _draw_legend(self) -> float:
        """Draw what is hidden, and what lines, dots and colours mean; return the height of the whole picture."""
        canvas, drawn, y = self.canvas, self.layout, self.layout.height + 8.0
        hidden = []
        if drawn.hidden_sets:
            trees: list[Tree] = [tree for partial_set in drawn.hidden_sets for tree in partial_set.trees]
            queries = count(sum(len(tree.queries) for tree in trees), "query", "queries")
            hidden.append(f"{count(len(drawn.hidden_sets), 'more set')} with {count(len(trees), 'tree')} and {queries}")
        if drawn.hidden_joins:
            hidden.append(count(len(drawn.hidden_joins), "more join"))
        for what in hidden:
            text = f"+ {what}, not drawn: EXPLAIN as text has them"
            canvas.text(SET_X, y + 8, text, 12, FAINT, room=WIDTH - SET_X - MARGIN, bold=True)
            y += 26
        canvas.line(MARGIN, y, drawn.width - MARGIN, y, RULE)
        x, middle = MARGIN, y + 24

        def explain(after: float, text: str) -> float:
            """Write what the sign at x means, and return where the next one stands."""
            room = WIDTH - MARGIN - x - after
            return x + after + 24 + canvas.text(x + after, middle + 4, text, 10.5, FAINT, room=room)

        canvas.path(f"M{x + 4} {middle - 7}v14M{x + 16} {middle - 7}v14", INK, 1.4)
        x = explain(28, "edge: a slice begins, to scale")
        if any(tree.marks.classes for tree in self.plan.trees):
            canvas.dot(x + 5, middle, 2.4, PAPER, extra=f' stroke="{INK}"')
            x = explain(16, "mark: a window ends inside a slice")
        canvas.line(x, middle, x + 30, middle, INK, 2, extra=' stroke-opacity="0.55"')
        canvas.line(x, middle - 3.5, x, middle + 3.5, INK, 1.4)
        canvas.dot(x + 30, middle, 3, INK)
        x = explain(42, "window from slide (tick) to range (dot), log scale")
        for step, colour in enumerate(("#2563eb", "#d97706", "#059669")):
            canvas.rect(x + 9 * step, middle - 5, 8, 10, colour, radius=2)
        x = explain(36, "colour: tree")
        canvas.line(x, middle - 4, x + 26, middle - 4, _READ, 2)
        canvas.line(x, middle + 4, x + 26, middle + 4, _READ, 7)
        x = explain(34, "thicker: more events/s or edges/s, log scale")
        explain(0, "sum(x) ×3: a partial asked for by 3 queries")
        return y + 48.0


def _thickness(per_second: float) -> float:
    """Return 1.5 to 14 pixels for 0.001 to 1,000,000 per second."""
    decades = log10(max(per_second, 1e-9)) + 3
    return min(14.0, max(1.5, 1.5 + 1.4 * decades))
