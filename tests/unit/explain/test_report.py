"""The HTML report and its charts: well-formed, escaped, self-contained, and honest about odd values."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from golden.plans import FEW, plan_of, svg_of
from windloom.errors import WindloomError
from windloom.explain.picture.canvas import text_width
from windloom.explain.picture.line_charts import Series, line_chart
from windloom_tools.demo.bars import bar_chart, stacked_bar
from windloom_tools.demo.page import Fact, Report, Section, facts_html, report_html, table, write_report

_SVG = "{http://www.w3.org/2000/svg}"
_HOSTILE = "<b>&'\"\x00" + "very long " * 30
_START = datetime(2026, 1, 5, 9, tzinfo=UTC)

CHARTS: dict[str, Callable[[], str]] = {
    "bars": lambda: bar_chart([("a", 8.1, "measured"), ("b", 337.0, "scaled")], "s"),
    "bars, log": lambda: bar_chart([("a", 0.5, ""), ("b", 3e6, "")], "events/s", log=True),
    "bars, log, equal powers of ten": lambda: bar_chart([("a", 10.0, ""), ("b", 10.0, "")], "s", log=True),
    "bars, nothing": lambda: bar_chart([], "s"),
    "bars, odd values": lambda: bar_chart([("a", 0.0, ""), ("b", math.inf, ""), ("c", math.nan, "")], "s", log=True),
    "bars, hostile": lambda: bar_chart([(_HOSTILE, 1.0, _HOSTILE), ("b", 1e12, "")], _HOSTILE),
    "stack": lambda: stacked_bar([("read", 6.2, "Spark"), ("step", 1.4, ""), ("write", 0.001, "")]),
    "stack, nothing": lambda: stacked_bar([]),
    "stack, zeros": lambda: stacked_bar([("read", 0.0, ""), ("step", math.nan, "")]),
    "stack, hostile": lambda: stacked_bar([(_HOSTILE, 1.0, _HOSTILE)] * 13),
    "lines": lambda: line_chart([Series("a", [(0, 1.0), (1, None), (2, 3.0)]), Series("b", [(0, 2.0), (2, 2.0)])]),
    "lines on log axes": lambda: line_chart(
        [Series("a", [(1, 0.5), (10, 0.0), (1000, 3e6)])], x_label="queries", log_x=True, log_y=True
    ),
    "lines over time": lambda: line_chart(
        [Series("a", [(_START + timedelta(minutes=i), i * 1.5) for i in range(90)])], y_label="avg(price)"
    ),
    "lines over months": lambda: line_chart([Series("a", [(_START + timedelta(days=i), i) for i in range(0, 300, 9)])]),
    "lines, one point": lambda: line_chart([Series("a", [(_START, 5.0)])]),
    "lines, nothing": lambda: line_chart([Series("a", [(0, None)])]),
    "lines, hostile": lambda: line_chart([Series(_HOSTILE, [(0, math.inf), (1, -1e18), (2, 1e-18)])] * 12),
}


@pytest.mark.parametrize("name", CHARTS)
def test_a_chart_is_well_formed_and_nothing_leaves_it(name: str) -> None:
    root = ElementTree.fromstring(CHARTS[name]())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    assert height > 0
    for element in root.iter(f"{_SVG}text"):
        size, bold = float(element.attrib["font-size"]), "font-weight" in element.attrib
        long = text_width(element.text or "", size, bold)
        left = float(element.attrib["x"]) - long * {"middle": 0.5, "end": 1.0}.get(element.get("text-anchor", ""), 0.0)
        assert left >= -0.1, element.text
        assert left + long <= width + 0.1, element.text
        assert 0 < float(element.attrib["y"]) < height, element.text
    for box in root.iter(f"{_SVG}rect"):
        assert float(box.attrib["width"]) >= 0
        assert float(box.get("x", "0")) + float(box.attrib["width"]) <= width


def test_a_log_scale_says_so() -> None:
    assert "log scale" in CHARTS["bars, log"]()
    assert "log scale" not in CHARTS["bars"]()


def test_bars_on_a_log_scale_grow_by_decades() -> None:
    root = ElementTree.fromstring(bar_chart([("a", 5.0, ""), ("b", 50.0, ""), ("c", 500.0, "")], "s", log=True))
    lengths = [float(box.attrib["width"]) for box in root.iter(f"{_SVG}rect") if box.get("rx")]
    assert lengths[1] - lengths[0] == pytest.approx(lengths[2] - lengths[1], abs=0.2)


def test_parts_of_a_stack_fill_the_bar_in_proportion() -> None:
    root = ElementTree.fromstring(stacked_bar([("a", 3.0, ""), ("b", 1.0, "")]))
    parts = [box for box in root.iter(f"{_SVG}rect") if box.get("height") == "40" and not box.get("rx")]
    first, second = (float(box.attrib["width"]) for box in parts)
    assert first / second == pytest.approx(3.0, rel=0.02)


def test_a_gap_in_a_series_breaks_its_line() -> None:
    chart = line_chart([Series("a", [(0, 1.0), (1, 2.0), (2, None), (3, 1.0), (4, 2.0)])])
    paths = [path for path in ElementTree.fromstring(chart).iter(f"{_SVG}path") if path.get("stroke-linejoin")]
    assert len(paths) == 2


def test_a_table_is_escaped_and_aligns_numbers_right() -> None:
    html = table(["name", "rows", "equal"], [(_HOSTILE, 1234, True), ("b", None, False)])
    assert "<b>" not in html
    assert '<th class="right">rows</th>' in html
    assert '<td class="right">1,234</td>' in html
    assert '<td class="yes">✓</td>' in html
    assert '<td class="no">✗</td>' in html
    ElementTree.fromstring(html)


def test_facts_are_escaped() -> None:
    html = facts_html([Fact("<i>", "1 & 2", "<u>")])
    assert "&lt;i&gt;" in html
    assert "1 &amp; 2" in html
    assert "<u>" not in html


def test_the_report_is_one_balanced_file_that_needs_nothing_else(tmp_path: Path) -> None:
    sections = [Section("The plan", svg_of(plan_of(FEW)), "One.\n\nTwo <b>.")]
    sections += [Section(name, chart()) for name, chart in CHARTS.items()]
    report = Report("A & <b>", _HOSTILE, (Fact("events/s", "1,000"),), tuple(sections))
    html = write_report(tmp_path / "deep" / "report.html", report).read_text(encoding="utf-8")
    _Balanced().check(html)
    assert "<b>" not in html
    assert html.count("<section") == len(sections)
    bare = html.replace("http://www.w3.org/2000/svg", "")
    assert not [word for word in ("http", "href", "url(", "@import", "<script", "<link", "<img") if word in bare]


def test_a_place_that_cannot_be_written_is_refused_and_nothing_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(WindloomError, match="cannot write the report"):
        write_report(tmp_path / "file" / "report.html", Report("a", "b"))
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_an_empty_report_is_a_page() -> None:
    _Balanced().check(report_html(Report("nothing", "")))


class _Balanced(HTMLParser):
    """Every element that is opened is closed, in order."""

    def check(self, html: str) -> None:
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "meta":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        pass
