"""The name that is proposed for an unknown function means in Spark what the unknown one means where it is known."""

from __future__ import annotations

import duckdb
import pytest

from windloom.aggregates.equivalents import EQUIVALENTS, FOREIGN, REFUSED, WITHIN_GROUP, near_functions
from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import QueryError
from windloom.language.select import parse_query
from windloom.model import DataType, Stream

_KNOWN = {*FUNCTIONS, *EQUIVALENTS, *WITHIN_GROUP}
#: Proposed names that are no aggregates, but functions of Spark.
_SCALARS = {"date_format", "if", "regexp_like", "split", "to_timestamp", "try_divide", "unix_timestamp"}
_TRADES = Stream(
    "trades", {name: DataType.parse(kind) for name, kind in (("ts", "timestamp"), ("x", "double"), ("y", "int"))}, "ts"
)

#: What is proposed, by the name that is written: DuckDB computes the one, and the other as it means in Spark.
_SAME_IN_DUCKDB = {
    "arg_max(x, y)": "max_by(x, y)",
    "arg_min(x, y)": "min_by(x, y)",
    "argmax(x, y)": "max_by(x, y)",
    "argmin(x, y)": "min_by(x, y)",
    "favg(x)": "avg(x)",
    "fsum(x)": "sum(x)",
    "kahan_sum(x)": "sum(x)",
    "geomean(x)": "exp(avg(ln(x)))",
    "geometric_mean(x)": "exp(avg(ln(x)))",
    "quantile_cont(x, 0.3)": "quantile(x, 0.3)",
    "quantile_disc(x, 0.3)": "approx_percentile(x, 0.3)",
    "list(y)": "array_agg(y)",
    "count_star()": "count(*)",
}
#: DuckDB calls these by other names, or means something else by them.
_IN_DUCKDB = {"approx_percentile(x, 0.3)": "quantile_disc(x, 0.3)", "quantile(x, 0.3)": "quantile_cont(x, 0.3)"}


@pytest.mark.parametrize("name", FOREIGN)
def test_a_name_of_another_tool_is_told_by_what_it_means_here_or_not_at_all(name: str) -> None:
    meant = FOREIGN[name]
    assert near_functions(name.upper(), []) == ([meant] if meant else [])
    assert name not in _KNOWN | set(REFUSED), "who writes it gets no hint"
    if meant and meant not in _SCALARS:
        called = meant if "(" in meant else f"{meant}({_arguments(meant)})"
        written = called.replace("condition", "x > 1").replace("w", "y")
        parse_query("q", f"SELECT {written} AS v FROM trades [TUMBLE 1 hour]", {"trades": _TRADES})


def _arguments(name: str) -> str:
    if name in EQUIVALENTS:
        return {"listagg": "x, ','", "count_if": "x > 1"}.get(name, "x")
    function = FUNCTIONS[name]
    if name == "top" or function == "approx_top":
        return "2, x"
    if name in ("quantile", "approx_percentile"):
        return "x, 0.5"
    if name.startswith("bool"):
        return "x > 1"
    if name.startswith("bit"):
        return "y"
    return "x, y" if name.startswith(("covar", "corr", "regr", "max_by", "min_by")) else "x"


@pytest.mark.parametrize(("written", "meaning"), _SAME_IN_DUCKDB.items())
def test_duckdb_computes_the_same_by_both_names(written: str, meaning: str) -> None:
    name = written.split("(")[0]
    assert near_functions(name, [])[0].split("(")[0] == meaning.split("(")[0]
    rows = "(VALUES (1.5, 3), (2.5, 1), (0.25, 2), (8.0, 7), (4.0, 5)) AS t(x, y)"
    meant = _IN_DUCKDB.get(meaning, meaning)
    (pair,) = duckdb.sql(f"SELECT {written}, {meant} FROM {rows}").fetchall()
    assert pair[0] == pytest.approx(pair[1])


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_a_letter_that_is_missing_is_found(name: str) -> None:
    for place in range(1, len(name)):
        typo = name[:place] + name[place + 1 :]
        if len(typo) > 3 and typo not in _KNOWN and typo not in FOREIGN:
            assert name in near_functions(typo, []) or FUNCTIONS[name] in near_functions(typo, []), typo


@pytest.mark.parametrize(
    ("written", "hint"),
    [
        ("var(x)", "did you mean 'var_samp'?"),
        ("stdev(x)", "did you mean 'stddev_samp'?"),
        ("sumIf(x)", "did you mean 'sum(x) FILTER (WHERE condition)'?"),
        ("nunique(x)", "did you mean 'count(DISTINCT x)'?"),
        ("sem(x)", ""),
    ],
)
def test_the_error_says_so(written: str, hint: str) -> None:
    with pytest.raises(QueryError) as raised:
        parse_query("q", f"SELECT count(*) AS n, {written} AS v FROM trades [TUMBLE 1 hour]", {"trades": _TRADES})
    assert hint in raised.value.hint
    assert bool(hint) == ("did you mean" in raised.value.hint)
