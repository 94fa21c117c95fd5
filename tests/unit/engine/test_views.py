"""What notebooks show: pictures, tables with all text escaped, answers as frames and charts."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest

from support.fake_loom import FakeLoom, made_round
from windloom.engine.views import AnswerViews, Picture, facts_table, rows_table
from windloom.errors import WindloomError

_MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)


class Views(AnswerViews):
    """Rows of twelve groups, and of a query without numbers."""

    def arrow(self, name: str) -> pa.Table:
        ends = [_MIDNIGHT + timedelta(minutes=i) for i in range(24)]
        columns: dict[str, Any] = {"window_start": ends, "window_end": ends, "k": [f"k{i % 12:02}" for i in range(24)]}
        if name == "numbers":
            columns |= {"v": [float(i) for i in range(24)], "n": list(range(24))}
        return pa.table(columns)

    def grouping(self, name: str) -> list[str]:
        return ["k"]


def test_a_query_is_a_frame_of_pandas() -> None:
    assert list(Views().pandas("numbers").columns) == ["window_start", "window_end", "k", "v", "n"]


def test_a_query_is_a_frame_of_polars_where_that_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("windloom.engine.views.find_spec", lambda name: None)
    with pytest.raises(WindloomError, match="polars is not installed"):
        Views().polars("numbers")
    made = ModuleType("polars")
    made.from_arrow = lambda table: table.num_rows  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "polars", made)
    monkeypatch.setattr("windloom.engine.views.find_spec", lambda name: object())
    assert Views().polars("numbers") == 24


def test_a_plot_is_a_line_per_group_and_says_what_is_left_out() -> None:
    plot = Views().plot("numbers")
    ElementTree.fromstring(plot.svg)
    assert plot._repr_svg_() == plot._repr_html_() == plot.svg
    assert "v; 2 more groups are not shown, whose mean is lower" in plot.svg
    assert "k11" in plot.svg, "the highest are shown"
    assert "k01" not in plot.svg
    assert "n; 2 more" in Views().plot("numbers", "n").svg
    assert "k11" not in Views().plot("numbers", groups=["k01", ("k00",)]).svg
    assert "more groups" not in Views().plot("numbers", most=12).svg
    assert (
        repr(plot)
        == str(plot)
        == ("<plot of 'v' of 'numbers', 10 of 12 groups; .save('plot.svg') writes it, notebooks show it>")
    )


def test_a_plot_of_many_rows_stays_small_and_keeps_its_extremes() -> None:
    class Many(Views):
        def arrow(self, name: str) -> pa.Table:
            ends = pa.array(range(200_000), pa.timestamp("us", tz="UTC"))
            values = [1e6 if i == 123_457 else float(i % 7) for i in range(200_000)]
            return pa.table({"window_start": ends, "window_end": ends, "k": ["k"] * 200_000, "v": values})

    plot = Many().plot("numbers")
    assert len(plot.svg) < 20_000
    assert "1,000,000" in plot.svg


def test_a_plot_is_saved_as_svg_and_as_png_if_that_can_be_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plot = Views().plot("numbers")
    plot.save(tmp_path / "plot.svg")
    assert (tmp_path / "plot.svg").read_text(encoding="utf-8") == plot.svg
    monkeypatch.setattr("windloom.engine.plots.find_spec", lambda name: None)
    with pytest.raises(WindloomError, match="as PNG needs the package cairosvg"):
        plot.save(str(tmp_path / "plot.png"))
    with pytest.raises(WindloomError, match="cannot save a picture as"):
        plot.save(tmp_path / "plot.pdf")
    with pytest.raises(WindloomError, match="cannot write"):
        plot.save(tmp_path / "none" / "plot.svg")
    made = ModuleType("cairosvg")
    made.svg2png = lambda bytestring: b"png of " + bytestring[:4]  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "cairosvg", made)
    monkeypatch.setattr("windloom.engine.plots.find_spec", lambda name: object())
    Picture(plot.svg).save(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").read_bytes() == b"png of <svg"


def test_a_group_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(WindloomError) as refused:
        Views().plot("numbers", groups=["k1"])
    assert "query 'numbers' has no group 'k1'" in str(refused.value)
    assert "it has 12, such as k00; k01; k02" in str(refused.value)
    with pytest.raises(WindloomError, match="cannot plot 0 groups"):
        Views().plot("numbers", most=0)


def test_a_column_that_cannot_be_plotted_is_refused() -> None:
    with pytest.raises(WindloomError, match="column 'k' is not one of numbers"):
        Views().plot("numbers", "k")
    with pytest.raises(WindloomError, match="no column of numbers"):
        Views().plot("texts")


def test_text_in_tables_is_escaped() -> None:
    shown = facts_table("a <b>", {"<i>": "<script>", "none": None, "seconds": {"step": 0.5}, "rows": 12_000})
    assert "<script>" not in shown
    assert "&lt;script&gt;" in shown
    assert "step 0.500" in shown
    assert "12,000" in shown
    assert "none" not in shown
    assert "&lt;x&gt;" in rows_table("t", ("a",), [("<x>",)])


def test_rounds_what_if_and_plans_show_themselves() -> None:
    loom = FakeLoom()
    assert "round 3" in made_round(3)._repr_html_()
    assert "work per second of event time" in loom.what_if(loom.queries["flow"])._repr_html_()
    made = loom._loom()
    for shown in (made.plan()._repr_html_(), made._repr_html_(), made.explain("svg")._repr_svg_()):  # type: ignore[attr-defined]
        assert shown is not None
        assert shown.startswith("<svg")
