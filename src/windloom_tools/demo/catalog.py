"""The demo's catalog: about a hundred queries a trading desk would watch, as CQL text."""

from __future__ import annotations

from collections.abc import Iterator

_STREAM = """\
-- Trades of one morning. `windloom explain` shows how these queries share one plan.
CREATE STREAM trades (ts TIMESTAMP, symbol STRING, price DOUBLE, volume BIGINT)
  TIME ts DELAY 10 seconds RATE {rate};
"""

#: (range, slide) in seconds of the desk's windows: every range at several slides.
_WINDOWS = [
    (length, slide)
    for length in (30, 60, 120, 300, 600, 900, 1800, 3600)
    for slide in (5, 10, 15, 20, 30, 60)
    if slide <= length <= 60 * slide
]


def demo_catalog(events_per_second: int) -> str:
    """The text of the catalog file."""
    statements = [_STREAM.format(rate=events_per_second)]
    for name, text in _queries():
        statements.append(f"CREATE QUERY {name} AS\n  {text};\n")
    return "\n".join(statements)


def _queries() -> Iterator[tuple[str, str]]:
    for length, slide in _WINDOWS:
        window = f"[RANGE {length} seconds SLIDE {slide} seconds]"
        yield (
            f"price_{length}_{slide}",
            f"SELECT symbol, avg(price) AS average, max(price) AS high FROM trades {window} GROUP BY symbol",
        )
        if slide in (5, 10, 30):
            yield (
                f"flow_{length}_{slide}",
                f"SELECT symbol, sum(volume) AS volume, count(*) AS trades FROM trades {window} GROUP BY symbol",
            )
        if slide in (15, 20, 60):
            yield (
                f"vwap_{length}_{slide}",
                f"SELECT sum(price * volume) / sum(volume) AS vwap, stddev_samp(price) AS risk FROM trades {window}",
            )
        if slide in (10, 60):
            yield (
                f"spread_{length}_{slide}",
                f"SELECT symbol, max(price) - min(price) AS spread FROM trades {window} GROUP BY symbol",
            )
        if slide in (30, 60):
            yield (
                f"large_{length}_{slide}",
                f"SELECT symbol, count(*) AS n, max(volume) AS largest FROM trades {window}"
                " WHERE volume > 400 GROUP BY symbol HAVING count(*) >= 10",
            )
    # Windows that do not line up with anything: prime slides, offsets, gaps.
    for length, slide, offset in ((60, 7, 0), (97, 13, 3), (1009, 97, 5), (20, 60, 30), (100, 45, 0)):
        window = f"[RANGE {length} seconds SLIDE {slide} seconds OFFSET {offset} seconds]"
        yield (
            f"odd_{length}_{slide}",
            f"SELECT symbol, avg(price) AS average, max(price) AS high FROM trades {window} GROUP BY symbol",
        )
