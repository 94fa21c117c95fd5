"""Names in the docs exist: modules, classes, functions, methods, commands with their options, targets, variables.

Decisions and the changelog tell what was; they may name what is gone.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest
from bench.__main__ import meant_by, workloads

from support.pages import DECISIONS, PAGES, ROOT, code_spans, fences, page_name
from windloom.cli.main import cli
from windloom.engine import Loom, Results
from windloom.engine.handle import Handle
from windloom.optimizer.sharing.incremental_plan import IncrementalPlan
from windloom.optimizer.sharing.problem import SharingProblem

PRESENT = [page for page in PAGES if page not in DECISIONS and page.name != "CHANGELOG.md"]

#: What the docs call the objects that users and contributors hold.
OBJECTS = {"loom": Loom, "handle": Handle, "results": Results, "problem": SharingProblem, "plan": IncrementalPlan}

#: Folders that a run makes, and that no one finds in the project.
MADE = {"build/browser/", "live/", "spark/", "shards/", "log/", "build/", "incoming/"}

#: Names that belong to Spark, Python, Numba or the reader.
FOREIGN = {
    "applyInArrow", "current_date", "element_at", "foreachBatch", "groupBy", "input_file_name", "java_method",
    "maxFileAge", "row_number", "timestamp_ntz", "toArrow", "try_reflect", "withWatermark", "StreamingQuery",
    "JAVA_HOME", "NUMBA_CACHE_DIR", "XDG_CONFIG_HOME", "UTF8_BINARY", "range_index",
}  # fmt: skip

every_page = pytest.mark.parametrize("page", PRESENT, ids=page_name)


@cache
def known_names() -> frozenset[str]:
    """Every name that the project's Python uses, and every word that its sources quote, such as strategies."""
    found: set[str] = set()
    for folder in ("src", "tests/support", "bench", "experiments", "tools"):
        for file in (ROOT / folder).rglob("*.py"):
            found.update(names_in(file))
    for file in (ROOT / "tests").rglob("test_*.py"):
        text = file.read_text(encoding="utf-8")
        found.update(
            re.findall(r"^(?:def )?(\w+)(?:\(|:| =)", text, re.MULTILINE), re.findall(r"\"(WINDLOOM_\w+)\"", text)
        )
    for file in (ROOT / "examples").glob("*.cql"):
        found.update(re.findall(r"\w+", file.read_text(encoding="utf-8")))
    # The Prometheus client ends the names of counters so.
    found.update([f"{name}_total" for name in found if name.startswith("windloom_")])
    return frozenset(found)


def names_in(file: Path) -> Iterator[str]:
    yield from (file.stem, file.parent.name)
    tree = ast.parse(file.read_text(encoding="utf-8"))
    prose = {node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.arg | ast.keyword):
            yield node.arg or ""
        elif isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in prose:
            yield from re.findall(r"\w+", node.value)


def own_words(page: Path) -> set[str]:
    """Names that the page itself makes up: columns and queries of its examples."""
    shown = [*fences(page, "sql"), *fences(page, "python"), *fences(page, "text"), *fences(page, "")]
    return set(re.findall(r"\w+", "\n".join(shown)))


def looks_like_a_name(word: str) -> bool:
    """`RoundInput`, `append_tails`, `_RULES`; not `avg`, `WHERE` or `x`, which are SQL or plain words."""
    return bool(re.fullmatch(r"[A-Z][a-z0-9]+([A-Z][a-z0-9]*)+|_*[A-Za-z]+[a-z0-9]*(_[A-Za-z0-9]+)+|_[A-Za-z]+", word))


@every_page
def test_every_name_of_code_exists(page: Path) -> None:
    made_up = own_words(page) | FOREIGN
    for span in code_spans(page):
        dotted = re.fullmatch(r"([A-Za-z_][\w.]*?)(\(.*\))?", span, re.DOTALL)
        if dotted is None or span.endswith((".py", ".md", ".json", ".cql", ".toml", ".html", ".svg", ".parquet")):
            continue
        first, *rest = dotted[1].split(".")
        if first in OBJECTS and rest:
            assert hasattr(OBJECTS[first], rest[0]) or rest[0] in instance_names(OBJECTS[first]), f"no {span}"
        elif first == "windloom":
            assert is_importable(dotted[1]), f"{span} cannot be imported"
        else:
            words = {word for word in (first, *rest) if looks_like_a_name(word)}
            assert words <= known_names() | made_up, f"nothing is called {words - known_names() - made_up}"


def test_every_name_in_the_drawings_of_the_architecture_exists() -> None:
    """Its text blocks are made of names: files, functions and values."""
    for block in fences(ROOT / "docs" / "architecture.md", "text"):
        for path in re.findall(r"[\w/]+/\w+\.py|\b\w+\.py", block):
            assert list((ROOT / "src").rglob(path)), f"there is no file {path}"
        for word in re.findall(r"(?<![\w.])[\w]+(?![\w/])", block):
            if looks_like_a_name(word):
                assert word in known_names() | FOREIGN, f"nothing is called {word}"


def instance_names(owner: type) -> set[str]:
    """Attributes that instances get when they are made."""
    sources = [inspect.getsource(class_) for class_ in owner.__mro__ if class_.__module__.startswith("windloom.")]
    return {name for source in sources for name in re.findall(r"self\.(\w+)[^=]*=", source)}


def is_importable(name: str) -> bool:
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for attribute in parts[end:]:
            if not hasattr(found, attribute):
                return False
            found = getattr(found, attribute)
        return True
    return False


@every_page
def test_every_folder_that_is_named_exists(page: Path) -> None:
    for span in code_spans(page):
        if re.fullmatch(r"(\w+/)+", span) and span not in MADE:
            assert any(
                (place / span).is_dir() for place in (ROOT, ROOT / "src", ROOT / "src" / "windloom", page.parent)
            ), span


def shell_lines(page: Path) -> Iterator[str]:
    """Commands in code spans and in shell blocks, without their comments."""
    for span in code_spans(page):
        yield span.replace("\n", " ")
    for block in fences(page, "sh"):
        yield from (re.sub(r"\s#.*", "", line) for line in block.splitlines())
    for block in fences(page, "text"):
        yield from (line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ "))


@every_page
def test_every_command_and_option_exists(page: Path) -> None:
    options = {
        name: {opt for parameter in command.params for opt in parameter.opts} for name, command in cli.commands.items()
    }
    every = {option for found in options.values() for option in found}
    for line in shell_lines(page):
        words = re.sub(r"'[^']*'|\"[^\"]*\"", "TEXT", line).split()
        if words[:1] == ["windloom"] and len(words) > 1 and not words[1].startswith("-"):
            assert words[1] in options, f"there is no command {line}"
            assert {word for word in words if word.startswith("--")} <= options[words[1]], f"an option of {line}"
        elif re.fullmatch(r"--[a-z][a-z-]*", words[0] if words else ""):
            assert words[0] in every | bench_options(), f"there is no option {words[0]}"


def bench_options() -> set[str]:
    return {
        option
        for folder in ("bench", "experiments")
        for file in (ROOT / folder).rglob("__main__.py")
        for option in re.findall(r'"(--[a-z-]+)"', file.read_text(encoding="utf-8"))
    }


@every_page
def test_every_target_and_every_workload_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for line in shell_lines(page):
        words = line.split()
        if words[:1] == ["make"] and len(words) > 1:
            assert words[1] in targets, f"there is no target {words[1]}"
        if words[:3] == ["python", "-m", "bench"]:
            for name in (word for word in words[3:] if not word.startswith("-") and not word.isupper()):
                assert meant_by(name, workloads()), f"there is no workload {name}"


@every_page
def test_every_variable_of_the_environment_is_read_somewhere(page: Path) -> None:
    named = {word for span in code_spans(page) for word in re.findall(r"\bWINDLOOM_[A-Z_]+\b", span)}
    for name in named:
        assert name in known_names(), f"nothing reads {name}"


def test_the_command_line_is_described() -> None:
    """Every command has a sentence about it and an example, and every option says what it does."""
    for name, command in cli.commands.items():
        assert command.help, name
        assert command.epilog, name
        assert [
            parameter.name for parameter in command.params if isinstance(parameter, click.Option) and not parameter.help
        ] == []
