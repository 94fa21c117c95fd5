"""EXPLAIN as a picture: streams → scans → slices → trees → queries → joins, from left to right, as one SVG file."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10

from windloom.explain.costs import CostView
from windloom.explain.joins import join_node, joined_text
from windloom.explain.node import node_title
from windloom.explain.picture.canvas import FAINT, INK, PAPER, RULE, WASH, Canvas, text_width
from windloom.explain.picture.layout import (
    CHIP_HEIGHT,
    CHIP_SIZE,
    JOIN_X,
    MARGIN,
    NAME_WIDTH,
    QUERY_X,
    SCAN_X,
    SET_X,
    STREAM_X,
    TOP,
    TREE_X,
    WIDTH,
    WINDOW_WIDTH,
    Box,
    JoinBlock,
    Layout,
    Row,
    ScanBlock,
    SetBlock,
    StreamBlock,
    TreeBlock,
    lay_out,
    rest_lines,
    row_middle,
    strip_height,
    used_techniques,
)
from windloom.explain.picture.strips import TimeAxis, draw_strip, draw_window
from windloom.explain.rows import enriched_node, relation_card, relation_node
from windloom.explain.scans import scan_node, scan_notes, scan_way
from windloom.explain.tree import plan_tree, stream_node
from windloom.explain.words import (
    counting,
    cut_text,
    grouping,
    measure_of,
    one_line,
    output_text,
    rate_text,
    slice_id_text,
)
from windloom.model.figures import amount, count
from windloom.model.relation import EnrichedStream
from windloom.plan.bits import early_sides, plan_name
from windloom.plan.physical import Asking, Member, Plan, Tree

_STYLE = ".wl-q:hover .wl-hit{fill-opacity:.07}.wl-q:hover .wl-thread{stroke-opacity:1;stroke-width:2.5}"


def explain_svg(plan: Plan, costs: CostView) -> str:
    """The plan as a self-contained SVG file; pointing at a part shows its details."""
    return _Picture(plan, costs).draw()


class _Picture:
    def __init__(self, plan: Plan, costs: CostView) -> None:
        self.plan, self.costs = plan, costs
        self.canvas = Canvas()
        self.layout: Layout = lay_out(plan)
        self.tree = plan_tree(plan, costs)
        self.sets = {each.number: node for each, node in zip(plan.sets, self.tree.children["sets"], strict=True)}
        trees = [tree for node in self.sets.values() for tree in node.children["trees"]]
        self.queries = {query.name: query for tree in trees for query in tree.children["queries"]}

    def draw(self) -> str:
        queries = list(self.plan.queries)
        title = self._header(queries)
        if queries:
            self.axis = TimeAxis.of(planned.query.window for planned in queries)
            self.axis.draw(self.canvas, TOP - 14.0, self.layout.height)
        for stream in self.layout.streams:  # lines first, so that cards and labels lie on top of them
            self._threads(stream)
        for stream in self.layout.streams:
            self._stream(stream)
        for join in self.layout.joins:
            self._join(join)
        height = draw_legend(self.canvas, self.plan, self.layout)
        return self.canvas.document(self.layout.width, height, title, style=_STYLE)

    def _header(self, queries: Sequence[Asking]) -> str:
        plan, canvas = self.plan, self.canvas
        trees = list(plan.trees)
        read = count(len(plan.streams), "stream") + _and_relations(plan)
        title = (
            f"{count(len(queries), 'query', 'queries')} over {read}, "
            f"{'woven into' if len(trees) < len(queries) else 'in'} {count(len(trees), 'tree')}"
        )
        canvas.text(MARGIN, 44, title, 20, room=self.layout.width - 2 * MARGIN, bold=True)
        chosen = "  ·  ".join([*self.tree["strategy"].lines, *self.tree["cost"].lines])
        canvas.text(MARGIN, 68, chosen, 12.5, FAINT, room=self.layout.width - 2 * MARGIN)
        blocks = [tree for stream in self.layout.streams for own in stream.sets for tree in own.trees]
        tree_x = min([TREE_X, *(block.card.x for block in blocks)])
        columns = [(STREAM_X, "STREAMS"), (SCAN_X, "SCANS"), (SET_X, "SLICES"), (tree_x, "TREES"), (QUERY_X, "QUERIES")]
        columns += [(JOIN_X, "JOINS")] if self.layout.joins else []
        for x, name in columns:
            canvas.text(x, TOP - 19.0, name, 10.5, FAINT, room=120, bold=True)
        return title

    def _threads(self, block: StreamBlock) -> None:
        canvas, is_relation = self.canvas, block.stream.is_relation
        width = 1.5 if is_relation else _thickness(self.plan.rate_of(block.stream)[0])
        for own in block.sets if is_relation else ():
            canvas.curve(block.card.right - 4, block.card.middle, own.card.x, own.card.middle, _READ, width)
        for scan in block.scans:
            x, y = block.card.right - 4, block.card.middle
            canvas.curve(x, y, scan.card.x, scan.card.middle, _READ, width)
            for fed in scan.sets:
                canvas.curve(scan.card.right, scan.card.middle, fed.card.x, fed.card.middle, _READ, width)
        for own in block.sets:
            for tree in own.trees:
                members = tree.hidden if tree.tree is None else (tree.tree,)
                width = _thickness(max(measure_of(own.partial_set).rate(each.edges) for each in members))
                x, y = own.card.right, own.card.middle
                canvas.curve(x, y, tree.card.x, tree.card.middle, tree.colour, width, extra=_SOFT)

    def _join(self, block: JoinBlock) -> None:
        canvas, planned, box = self.canvas, block.join, block.card
        with canvas.group(node_title(join_node(self.plan, planned, self.costs)), "wl-q"):
            for number, thread in enumerate(block.threads):
                y = box.y + box.height * (number + 1) / (len(block.threads) + 1)
                soft = ' class="wl-thread" stroke-opacity="0.5"'
                canvas.curve(thread.x, thread.y, box.x, y, thread.colour, 1.6, extra=soft)
            canvas.rect(box.x, box.y, box.width, box.height, PAPER, radius=8, stroke=INK)
            x, room = box.x + 14, box.width - 28
            used = canvas.text(
                box.right - 14, box.y + 24, planned.query.window.short, 10.5, FAINT, room=110, anchor="end"
            )
            canvas.text(x, box.y + 24, one_line(planned.name), 13, room=room - used - 8, bold=True)
            canvas.text(x, box.y + 43, joined_text(planned.join), 11, INK, room=room)
            name = plan_name(early_sides(self.plan, planned))
            canvas.text(x, box.y + 60, f"{name} · {planned.fold}", 10.5, FAINT, room=room)
            canvas.text(x, box.y + 77, output_text(planned.query), 10.5, FAINT, room=room)

    def _stream(self, block: StreamBlock) -> None:
        stream, box = block.stream, block.card
        for scan in block.scans:
            self._scan(scan)
        for own in block.sets:
            self._set(own)
        if stream.is_relation:
            planned = next(relation for relation in self.plan.relations if relation.name == stream.name)
            title = node_title(relation_node(self.plan, planned))
            self._dark_card(box, title, "#115e59", relation_card(planned))
            return
        rate, origin = self.plan.rate_of(stream)
        events = amount(rate, "event/s", "events/s")
        if isinstance(stream, EnrichedStream):
            texts = [stream.base, "+ " + ", ".join(stream.relations), "joined as tuples come", events]
            self._dark_card(box, enriched_node(stream).name, "#334155", texts)
            return
        node = stream_node(self.plan, stream)
        windows = f"{amount(node['windows_per_tuple'].value, 'window')} per tuple"
        self._dark_card(box, node_title(node), "#334155", [stream.name, events, origin.source, windows])

    def _dark_card(self, box: Box, title: str, colour: str, texts: Sequence[str]) -> None:
        """A card of the first column: a name and three lines."""
        canvas, room = self.canvas, box.width - 28
        styles = ((25, 14.0, PAPER), (44, 11.5, "#e2e8f0"), (59, 10.5, "#cbd5e1"), (77, 10.5, "#cbd5e1"))
        with canvas.group(title):
            canvas.rect(box.x, box.y, box.width, box.height, colour, radius=8)
            for place, (text, (y, size, ink)) in enumerate(zip(texts, styles, strict=True)):
                canvas.text(box.x + 14, box.y + y, one_line(text), size, ink, room=room, bold=place == 0)

    def _scan(self, block: ScanBlock) -> None:
        canvas, scan, box = self.canvas, block.scan, block.card
        with canvas.group(node_title(scan_node(self.plan, scan))):
            canvas.rect(box.x, box.y, box.width, box.height, WASH, radius=8, stroke="#94a3b8")
            x, room = box.x + 14, box.width - 28
            used = canvas.text(box.right - 14, box.y + 25, scan_way(scan), 11, room=room / 2, anchor="end")
            canvas.text(x, box.y + 25, f"scan {scan.number}", 13, room=room - used - 8, bold=True)
            for line, text in enumerate(scan_notes(scan)):
                canvas.text(x, box.y + 44 + 16 * line, text, 10.5, FAINT, room=room)

    def _set(self, block: SetBlock) -> None:
        canvas, partial_set, box = self.canvas, block.partial_set, block.card
        for tree in block.trees:
            self._tree(block, tree)
        every = "every row" if partial_set.is_relation else "every tuple"
        where = every if partial_set.where is None else f"where {one_line(partial_set.where.sql)}"
        groups = f"by {grouping(partial_set)}" if partial_set.group_by else "not grouped"
        groups += "" if (counted := counting(partial_set)) is None else f", {counted}"
        slices = cut_text(partial_set, partial_set.edges)
        how = slice_id_text(partial_set.slice_id, measure_of(partial_set)) if partial_set.window.is_sliced else ""
        with canvas.group(node_title(self.sets[partial_set.number])):
            canvas.rect(box.x, box.y, box.width, box.height, PAPER, radius=8, stroke=RULE)
            x, right = box.x + 14, box.right - 14
            used = canvas.text(right, box.y + 23, slices, 11, FAINT, room=box.width * 0.66, anchor="end")
            canvas.text(x, box.y + 23, f"set {partial_set.number}", 13, room=box.width - 40 - used, bold=True)
            canvas.text(x, box.y + 41, f"{where} · {groups}", 11, INK, room=box.width - 28)
            for chip in block.chips:
                canvas.rect(chip.x, chip.y, chip.width, CHIP_HEIGHT, WASH, radius=CHIP_HEIGHT / 2)
                centre = chip.x + chip.width / 2
                canvas.text(centre, chip.y + 12.7, chip.text, CHIP_SIZE, room=chip.width - 13.9, anchor="middle")
            if partial_set.window.is_sliced:
                draw_strip(canvas, block)
            bottom = block.strip_y + strip_height(len(partial_set.trees)) + 32.0
            room = box.width - 28
            if cost_text := self.costs.set_text(partial_set):
                room -= 14 + canvas.text(right, bottom, cost_text, 10.5, INK, room=room / 2, anchor="end")
            if text_width(how, 10.5) > room:
                how = how.partition(":")[0]
            canvas.text(x, bottom, how, 10.5, FAINT, room=room)

    def _tree(self, owner: SetBlock, block: TreeBlock) -> None:
        canvas, box = self.canvas, block.card
        for row in block.rows:
            self._row(block, row)
        if block.rest:
            self._rest(owner, block)
        if block.tree is None:
            self._hidden_trees(owner, block)
            return
        number = owner.partial_set.trees.index(block.tree)
        with canvas.group(node_title(self.sets[owner.partial_set.number].children["trees"][number])):
            canvas.rect(box.x, box.y, box.width, box.height, PAPER, radius=6, stroke=block.colour)
            canvas.rect(box.x, box.y, 5, box.height, block.colour, radius=2)
            if box.height < 40:
                self._small_tree(owner, block, block.tree)
            else:
                self._tree_card(owner, block, block.tree)
                label = rate_text(owner.partial_set, block.tree.edges)
                canvas.text(box.x - 8, box.middle - 8, label, 10.5, block.colour, room=104, anchor="end", halo=True)

    def _small_tree(self, owner: SetBlock, block: TreeBlock, tree: Tree) -> None:
        box = block.card
        cost = self.costs.trees_text(owner.partial_set, [tree])
        self.canvas.text(box.right - 10, box.middle + 4, cost, 10.5, FAINT, room=82, anchor="end")
        rate = rate_text(owner.partial_set, tree.edges)
        self.canvas.text(box.right - 96, box.middle + 4, rate, 10.5, FAINT, room=104, anchor="end")
        self.canvas.text(box.x + 12, box.middle + 4, block.name, 11.5, block.colour, room=74, bold=True)

    def _tree_card(self, owner: SetBlock, block: TreeBlock, tree: Tree) -> None:
        canvas, box = self.canvas, block.card
        x, right, room = box.x + 16, box.right - 12, box.width - 28
        used = canvas.text(
            right, box.y + 22, count(len(tree.queries), "query", "queries"), 11, room=room / 2, anchor="end"
        )
        canvas.text(x, box.y + 22, block.name, 13, block.colour, room=room - used - 8, bold=True)
        cost, note = self.costs.card_texts(owner.partial_set, tree)
        canvas.text(x, box.y + 41, cost, 11, room=room)
        canvas.text(x, box.y + 57, note, 10.5, FAINT, room=room)
        first, *others = used_techniques(owner.partial_set, tree)
        canvas.text(x, box.y + 73, first, 10.5, FAINT, room=room)
        if others:
            canvas.text(x, box.y + 88, ", ".join(others), 10.5, FAINT, room=room)

    def _hidden_trees(self, owner: SetBlock, block: TreeBlock) -> None:
        box = block.card
        cost = self.costs.trees_text(owner.partial_set, block.hidden)
        with self.canvas.group(f"{block.name[2:]} not drawn one by one, cost {cost}"):
            dashes = ' stroke-dasharray="4 3"'
            self.canvas.rect(box.x, box.y, box.width, box.height, PAPER, radius=6, stroke=block.colour, extra=dashes)
            used = self.canvas.text(box.right - 10, box.middle + 4, cost, 10.5, FAINT, room=104, anchor="end")
            room = box.width - 32 - used
            self.canvas.text(box.x + 14, box.middle + 4, block.name, 11.5, FAINT, room=room, bold=True)

    def _row(self, block: TreeBlock, row: Row) -> None:
        canvas, box = self.canvas, row.box
        first = row.queries[0]
        y = row_middle(row, self.layout.roomy)
        with canvas.group(self._row_title(row.queries), "wl-q"):
            thread = ' class="wl-thread" stroke-opacity="0.5"'
            canvas.curve(block.card.right, block.card.middle, box.x - 8, y, block.colour, 1.2, extra=thread)
            hit = ' class="wl-hit" fill-opacity="0"'
            canvas.rect(box.x - 8, box.y, box.width + 12, box.height, block.colour, radius=3, extra=hit)
            canvas.dot(box.x - 5, y, 2.6, block.colour)
            name = one_line(first.name)
            if len(row.queries) > 1:
                more = f" +{len(row.queries) - 1:,}"
                used = text_width(more, 11.5)
                used += canvas.text(box.x + 4, y + 4, name, 11.5, room=NAME_WIDTH - used - 8)
                canvas.text(box.x + 4 + used - text_width(more, 11.5), y + 4, more, 11.5, FAINT, room=NAME_WIDTH)
            else:
                canvas.text(box.x + 4, y + 4, name, 11.5, room=NAME_WIDTH - 8)
            window = first.query.window
            canvas.text(box.x + NAME_WIDTH, y + 4, window.short, 10.5, FAINT, room=WINDOW_WIDTH)
            if self.layout.roomy:
                canvas.text(box.x + 4, y + 18, output_text(first.query), 10, FAINT, room=self.axis.left - box.x - 14)
            if not window.is_version:
                draw_window(canvas, self.axis, window, y, block.colour, 12)

    def _row_title(self, queries: Sequence[Member]) -> str:
        lines: list[str] = []
        for planned in queries[:8]:
            node = self.queries[planned.name]
            lines += [
                f"{one_line(node.name)}  {node['window'].first_line}",
                node["answer"].first_line,
                node["shares"].first_line,
            ]
        if len(queries) > 8:
            lines.append(f"and {len(queries) - 8:,} more: " + ", ".join(one_line(each.name) for each in queries[8:]))
        return "\n".join(lines)

    def _rest(self, owner: SetBlock, block: TreeBlock) -> None:
        """Queries without a name of their own: a thin line each, or for every n-th if they are too many."""
        canvas, box = self.canvas, block.rest_box
        ranges = [planned.query.window.range_ticks for planned in block.rest]
        lines, pitch = rest_lines(block.rest)
        middle = box.y + 12 + lines * pitch / 2
        thread = ' stroke-opacity="0.22"'
        width = min(24.0, 3.0 + len(block.rest) / 20)
        canvas.curve(block.card.right, block.card.middle, box.x - 8, middle, block.colour, width, extra=thread)
        canvas.rect(box.x - 8, box.y + 12, 3, max(4.0, lines * pitch), block.colour, extra=' fill-opacity="0.5"')
        more = f"+ {len(block.rest):,} more" if block.rows else count(len(block.rest), "query", "queries")
        canvas.text(box.x + 4, middle + 1, more, 12, block.colour, room=NAME_WIDTH + WINDOW_WIDTH - 20, bold=True)
        measure = measure_of(owner.partial_set)
        span = f"ranges {measure.short(min(ranges))} to {measure.short(max(ranges))}"
        drawn = "" if lines == len(block.rest) else f", {lines} of them drawn"
        canvas.text(box.x + 4, middle + 16, span + drawn, 10.5, FAINT, room=NAME_WIDTH + WINDOW_WIDTH - 8)
        for line in range(lines):
            start, end = line * len(block.rest) // lines, (line + 1) * len(block.rest) // lines
            y = box.y + 12 + (line + 0.5) * pitch
            with canvas.group("\n".join(_brief(planned) for planned in block.rest[start:end])):
                draw_window(canvas, self.axis, block.rest[start].query.window, y, block.colour, pitch)


#: The colour of threads of tuples.
_READ = "#cbd5e1"
_SOFT = ' stroke-opacity="0.38"'


def _brief(planned: Member) -> str:
    return f"{one_line(planned.name)}  {planned.query.window}  {output_text(planned.query)}"


def _and_relations(plan: Plan) -> str:
    return f" and {count(len(plan.relations), 'relation')}" if plan.relations else ""


def _thickness(per_second: float) -> float:
    """1.5 to 14 pixels for 0.001 to 1,000,000 per second."""
    decades = log10(max(per_second, 1e-9)) + 3
    return min(14.0, max(1.5, 1.5 + 1.4 * decades))


_LEGEND_HEIGHT = 48.0


def draw_legend(canvas: Canvas, plan: Plan, layout: Layout) -> float:
    """Draws below everything else and returns the height of the whole picture."""
    y = _hidden_joins(canvas, layout, _hidden_sets(canvas, layout, layout.height + 8.0))
    canvas.line(MARGIN, y, layout.width - MARGIN, y, RULE)
    x, middle = MARGIN, y + 24
    canvas.path(f"M{x + 4} {middle - 7}v14M{x + 16} {middle - 7}v14", INK, 1.4)
    x = _legend_text(canvas, x + 28, middle, "edge: a slice begins, to scale")
    if any(tree.marks.classes for tree in plan.trees):
        canvas.dot(x + 5, middle, 2.4, PAPER, extra=f' stroke="{INK}"')
        x = _legend_text(canvas, x + 16, middle, "mark: a window ends inside a slice")
    canvas.line(x, middle, x + 30, middle, INK, 2, extra=' stroke-opacity="0.55"')
    canvas.line(x, middle - 3.5, x, middle + 3.5, INK, 1.4)
    canvas.dot(x + 30, middle, 3, INK)
    x = _legend_text(canvas, x + 42, middle, "window from slide (tick) to range (dot), log scale")
    for step, colour in enumerate(("#2563eb", "#d97706", "#059669")):
        canvas.rect(x + 9 * step, middle - 5, 8, 10, colour, radius=2)
    x = _legend_text(canvas, x + 36, middle, "colour: tree")
    canvas.line(x, middle - 4, x + 26, middle - 4, "#cbd5e1", 2)
    canvas.line(x, middle + 4, x + 26, middle + 4, "#cbd5e1", 7)
    x = _legend_text(canvas, x + 34, middle, "thicker: more events/s or edges/s, log scale")
    _legend_text(canvas, x, middle, "sum(x) ×3: a partial asked for by 3 queries")
    return y + _LEGEND_HEIGHT


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


def _legend_text(canvas: Canvas, x: float, middle: float, text: str) -> float:
    return x + canvas.text(x, middle + 4, text, 10.5, FAINT, room=WIDTH - MARGIN - x) + 24
