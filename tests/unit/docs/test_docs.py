"""The docs stay true: links resolve, CQL parses, tests and files that are named exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.pages import DECISIONS, PAGES, ROOT, anchors, code_spans, fences, links, page_name
from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.model import DataType, Stream
from windloom.optimizer import stages

#: The streams that single queries in the docs are about.
STREAMS = {
    name: Stream(name, {column: DataType.parse(kind) for column, kind in columns.items()}, time="ts")
    for name, columns in {
        "trades": {"ts": "timestamp", "symbol": "string", "venue": "string", "price": "double", "volume": "bigint"},
        "orders": {"ts": "timestamp", "user": "bigint", "region": "string", "price": "bigint"},
        "clicks": {"ts": "timestamp", "user": "bigint", "kind": "string"},
    }.items()
}

every_page = pytest.mark.parametrize("page", PAGES, ids=page_name)


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    for target in links(page):
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{target} is not there"
        assert file.is_relative_to(ROOT), f"{target} leaves the project"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


@every_page
def test_every_sql_block_is_cql_that_parses(page: Path) -> None:
    for block in fences(page, "sql"):
        if re.search(r"^CREATE ", block, re.MULTILINE):
            parse_catalog(block).parse(STREAMS)
        else:
            parse_query("example", block, STREAMS)


@every_page
def test_every_test_that_is_named_exists(page: Path) -> None:
    known = {
        name
        for file in ROOT.glob("tests/**/test_*.py")
        for name in re.findall(r"^def (test_\w+)", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    named = {span for span in code_spans(page) if re.fullmatch(r"test_\w+", span)}
    assert named <= known, f"no such tests: {sorted(named - known)}"


@every_page
def test_every_file_that_is_named_exists(page: Path) -> None:
    """`rounds/step.py` may be named from the package, from the project or from the page; NAME is the reader's own."""
    for span in code_spans(page):
        if re.fullmatch(r"[\w./-]*\w/[\w./-]+\.(py|md|svg|cql|csv|toml|txt)", span) and "NAME" not in span:
            places = [folder / span for folder in (ROOT, ROOT / "src", ROOT / "src" / "windloom", page.parent)]
            assert any(place.exists() for place in places), f"there is no file {span}"


@every_page
def test_no_page_tells_where_it_was_written(page: Path) -> None:
    assert not re.search(r"(?<![\w.])/(home|root|work|tmp|Users)/", page.read_text(encoding="utf-8"))


def test_no_sentence_stands_in_two_pages() -> None:
    """One page says it, and the others link to it. A program writes experiments, and the changelog tells what was."""
    pages_of: dict[str, set[str]] = {}
    for page in PAGES:
        if page.parent.name != "experiments" and page.name != "CHANGELOG.md":
            prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
            for sentence in re.split(r"(?<=[.:;!?|])\s|\n\n", prose):
                words = sentence.strip(" *|\n").split()
                if len(words) >= 6:
                    pages_of.setdefault(" ".join(words), set()).add(page_name(page))
    assert {sentence: pages for sentence, pages in pages_of.items() if len(pages) > 1} == {}


def test_the_readme_is_read_in_three_minutes_how_it_works_at_one_sitting_and_the_rest_has_a_bound() -> None:
    words = {page_name(page): len(page.read_text(encoding="utf-8").split()) for page in PAGES}
    assert words["README.md"] <= 1_400
    assert words["docs/how_it_works.md"] <= 3_000
    # A page that grows makes another one shorter; programs write experiments.
    bounded = [page for page in words if "experiments" not in page and page != "CHANGELOG.md"]
    assert sum(words[page] for page in bounded) <= 30_000


def test_the_architecture_draws_every_room_and_lists_the_stages_of_the_optimizer() -> None:
    page = ROOT / "docs" / "architecture.md"
    drawn = [line.split()[0] for line in fences(page, "text")[0].splitlines()]
    rooms = [folder.parent.name for folder in (ROOT / "src" / "windloom").glob("*/__init__.py")]
    assert sorted(set(drawn) - {"errors"}) == sorted(rooms)
    listed = re.findall(r"^\| (\d)\. `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert listed == [(str(number), stage.__name__) for number, stage in enumerate(stages.STAGES, 1)]


def test_adding_a_window_kind_or_a_statistic_touches_the_files_that_contributing_lists() -> None:
    """Those that name the newest kind, and the newest statistic that plans read."""

    def naming(pattern: str) -> set[str]:
        sources = sorted((ROOT / "src").rglob("*.py"))
        found = {path for path in sources if re.search(pattern, path.read_text())}
        return {path.relative_to(ROOT / "src").as_posix().removeprefix("windloom/") for path in found}

    rooms = {f"{room}/windows/cumulate.py" for room in ("model", "language", "state")}
    kind = r'Cumulate(Window|Life|Syntax)|windows\.cumulate|"cumulate"'
    assert naming(kind) == rooms | {"spark/verify/windows.py", "windloom_tools/oracle/answers.py"}
    assert naming(r"\.spread\b|\bspread=|spread_of") == {"statistics/set_statistics.py", "explain/words.py"}


def test_the_python_example_of_the_readme_is_the_quickstart() -> None:
    quickstart = (ROOT / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert fences(ROOT / "README.md", "python")[0] == quickstart.split('"""\n\n', 1)[1]


def test_the_python_example_of_streams_is_the_one_that_runs() -> None:
    example = (ROOT / "examples" / "streaming.py").read_text(encoding="utf-8")
    assert fences(ROOT / "docs" / "streaming.md", "python")[0] == example.split('"""\n\n', 1)[1]


def test_the_python_example_of_the_language_is_the_one_that_runs() -> None:
    example = (ROOT / "examples" / "geo_mean.py").read_text(encoding="utf-8")
    assert fences(ROOT / "docs" / "language.md", "python")[0] == example.split('"""\n\n', 1)[1]


def test_the_python_example_of_the_service_is_the_one_that_runs() -> None:
    example = (ROOT / "examples" / "service.py").read_text(encoding="utf-8")
    assert fences(ROOT / "docs" / "service.md", "python")[0] == example.split('"""\n\n', 1)[1]


def test_the_example_catalog_parses() -> None:
    catalog = parse_catalog((ROOT / "examples" / "trades.cql").read_text(encoding="utf-8"), "trades.cql")
    assert len(catalog.parse()) == len(catalog.queries) > 0


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_has_a_date_a_context_consequences_and_a_place_in_the_list(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.match(r"# .+\n\n\d{4}-\d\d-\d\d\n", text)
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == ["Context", "Decision", "Consequences"]
    assert f"decisions/{page.name}" in list(links(ROOT / "docs" / "architecture.md"))


def test_every_decision_has_a_number_of_its_own() -> None:
    numbers = [int(page.name[:4]) for page in DECISIONS]
    assert sorted(set(numbers)) == numbers


@every_page
def test_nothing_waits_to_be_filled_in(page: Path) -> None:
    """A line of one word in capitals is a place that something was to be put."""
    assert re.findall(r"^[A-Z_]{4,}$", page.read_text(encoding="utf-8"), re.MULTILINE) == []
