"""What the language refuses: `refused/*.cql` shows each text with its error, its place and what to do instead.

A file begins with the streams and relations that its queries read; without any, its texts are whole catalogs. Blocks
are divided by blank lines. A line that ends in `...` may go on in any way, and `#` begins a comment. If a message was
changed on purpose, `REWRITE=1 pytest tests/unit/language/test_refused.py` writes it into the files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import pytest

from windloom.errors import QueryError
from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.model import RowQuery, Stream

FILES = sorted(Path(__file__).with_name("refused").glob("*.cql"))


def blocks(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").rstrip("\n").split("\n\n")


CASES = [
    pytest.param(file, number, id=f"{file.stem}-{number}")
    for file in FILES
    for number, block in enumerate(blocks(file))
    if number > 0 and not block.startswith("#")
]


@cache
def sources(file: Path) -> Mapping[str, Stream] | None:
    declared = blocks(file)[0]
    if declared.startswith("#"):
        return None
    catalog = parse_catalog(declared)
    return {each.stream.name: each.stream for each in (*catalog.streams, *catalog.relations)}


def text_of(block: str) -> str:
    written = block.partition("\nerror: ")[0].split("\n")
    return "\n".join(line for line in written if not re.fullmatch(r" *\^+", line))


def with_error(text: str, file: Path) -> str:
    """The block of a text: carets below the line where the error is, then message, facts and hint."""
    streams = sources(file)
    with pytest.raises(QueryError) as caught:
        parse_catalog(text) if streams is None else parse_query("q", text, streams)
    place, _, caret, *facts = caught.value.detail.splitlines()
    line, column = map(int, re.findall(r"\d+", place))
    message = re.sub(r"^(query 'q'|catalog 'catalog'): ", "", caught.value.message)
    shown = text.split("\n")
    shown.insert(line, " " * (column - 1) + caret.strip())
    return "\n".join([*shown, f"error: {message}", *(f"fact: {fact}" for fact in facts), f"hint: {caught.value.hint}"])


def agree(found: str, expected: str) -> bool:
    pairs = zip(found.split("\n"), expected.split("\n"), strict=False)
    return found.count("\n") == expected.count("\n") and all(
        line.startswith(start.removesuffix("...")) if start.endswith("...") else line == start for line, start in pairs
    )


@pytest.mark.parametrize(("file", "number"), CASES)
def test_a_text_is_refused_with_its_place_and_a_way_out(file: Path, number: int) -> None:
    expected = blocks(file)[number]
    found = with_error(text_of(expected), file)
    if "REWRITE" in os.environ and not agree(found, expected):
        written = blocks(file)
        written[number] = found
        file.write_text("\n\n".join(written) + "\n", encoding="utf-8")
    else:
        assert found == expected or agree(found, expected)


@pytest.mark.parametrize("block", blocks(FILES[0].with_name("landmark_joins.cql"))[2:])
def test_what_partials_cannot_answer_is_joined_tuple_by_tuple_where_a_window_ends(block: str) -> None:
    text = text_of(block).replace("[LANDMARK SLIDE", "[RANGE 1 hour SLIDE")
    streams = sources(FILES[0].with_name("landmark_joins.cql"))
    assert streams is not None
    assert isinstance(parse_query("q", text, streams).source, RowQuery)
