"""Starting: help that teaches, and nothing heavy loaded before it is needed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.command import Command
from windloom import __version__
from windloom.cli.main import cli

EXAMPLE = Path(__file__).parents[2] / "examples" / "trades.cql"

LOADED = """
import json, sys
import windloom
alone = [name for name in ("pyspark", "numba", "numpy", "pyarrow", "sqlglot", "click") if name in sys.modules]
from windloom.cli.main import main
try:
    main(["--help"])
except SystemExit as left:
    code = left.code
heavy = [name for name in ("pyspark", "numba", "pyarrow", "sqlglot") if name in sys.modules]
print(json.dumps([alone, code, heavy]), file=sys.stderr)
"""


def test_importing_and_asking_for_help_load_neither_spark_nor_the_kernels() -> None:
    # A process of its own, since this one has loaded everything.
    done = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True)
    assert json.loads(done.stderr) == [[], 0, []]
    assert done.stdout.startswith("Usage: ")


EXPLAINED = """
import sys
from windloom.cli.main import main
try:
    main(["explain", sys.argv[1]])
except SystemExit:
    pass
print(*[name for name in ("pandas", "scipy.optimize", "duckdb") if name in sys.modules], file=sys.stderr)
"""


def test_explaining_a_catalog_loads_no_library_that_only_rows_need() -> None:
    arguments = [sys.executable, "-c", EXPLAINED, str(EXAMPLE)]
    done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    assert "Plan: 8 queries" in done.stdout
    assert done.stderr.split() == []


@pytest.mark.parametrize(("command", "words"), [("explain", "Plan: 8 queries"), ("plan", "strategy auto")])
def test_a_plan_is_shown_where_there_is_no_java(command: str, words: str, tmp_path: Path) -> None:
    # Whatever would start a JVM fails here, and it would be told on stderr.
    bare = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    arguments = [sys.executable, "-m", "windloom", command, str(EXAMPLE)]
    done = subprocess.run(arguments, env=bare, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert words in done.stdout


def test_the_version_is_told(windloom: Command) -> None:
    outcome = windloom("--version")
    assert (outcome.code, outcome.out) == (0, f"windloom, version {__version__}\n")


def test_help_without_a_command_shows_a_catalog_and_where_to_start(windloom: Command) -> None:
    outcome = windloom("--help")
    assert outcome.code == 0
    for words in ("CREATE STREAM trades", "CREATE QUERY avg_1h", "windloom demo", "run", "explain", "verify"):
        assert words in outcome.out


def test_without_arguments_it_says_what_it_can_do(windloom: Command) -> None:
    outcome = windloom()
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert len(lines) < 14
    named = [line.split()[1] for line in lines if line.startswith("  windloom ")]
    assert named == ["demo", "init", "explain", "run", "show", "verify", "serve"]
    assert set(named) <= set(cli.commands)


def commands() -> list[tuple[str, ...]]:
    """Every command there is, those of groups included."""
    found: list[tuple[str, ...]] = []
    for name, command in cli.commands.items():
        found.append((name,))
        found += [(name, inner) for inner in getattr(command, "commands", ())]
    return found


@pytest.mark.parametrize("command", commands(), ids=" ".join)
def test_the_help_of_a_command_teaches_by_an_example(windloom: Command, command: tuple[str, ...]) -> None:
    outcome = windloom(*command, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"Example: windloom {' '.join(command)}" in " ".join(outcome.out.split())


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (
            "run",
            [
                "--stream NAME=PATH",
                "windloom show DIR",
                "auto|no_share|shared|",
                "|weave_share|tri_weave|",
                "auto|driver|executors",
            ],
        ),
        ("explain", ["--format [text|json|svg]", "pairs|panes|cutty"]),
        ("verify", ["exit code is 1", "auto|recalculate|prefix_ring"]),
        ("demo", ["--events", "[default: ", "HTML report"]),
    ],
)
def test_help_names_the_choices(windloom: Command, command: str, words: list[str]) -> None:
    text = " ".join(windloom(command, "--help").out.split())
    for word in words:
        assert word in text
