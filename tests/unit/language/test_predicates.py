"""Rules by which a WHERE becomes a predicate: spellings that are one, and what is known of them."""

from __future__ import annotations

import pytest

from support.predicates import read
from windloom.language.sql.predicates import analyse
from windloom.model import DataType, Expression, Predicate, Stream, common, covers, implies
from windloom.optimizer.intake.signatures import most_signatures


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("s = 'u' AND a > 5", "a > 5 AND s = 'u'"),
        ("a > 5 AND a > 5 AND 5 < a", "a > 5"),
        ("a >= 6", "a > 5"),
        ("a > 5.5", "a > 5"),
        ("a > 5L AND a > 3.2BD", "a > 5"),
        ("x >= 6", "x >= 6"),
        ("a BETWEEN 10 AND 20", "a >= 10 AND a <= 20"),
        ("a >= 10 AND 20 >= a", "a >= 10 AND a <= 20"),
        ("a NOT BETWEEN 10 AND 20", "a < 10 OR a > 20"),
        ("a IN (7, 1, 7)", "a IN (1, 7)"),
        ("a = 7 OR a = 1", "a IN (1, 7)"),
        ("a = 7 OR a = 1 OR NOT p", "NOT p OR a IN (1, 7)"),
        ("NOT (a <> 1 AND a <> 7)", "a IN (1, 7)"),
        ("a NOT IN (7, 1)", "a NOT IN (1, 7)"),
        ("a NOT IN (7, NULL)", "FALSE"),
        ("a IN (7, NULL)", "a = 7"),
        ("NOT (a > 5)", "a <= 5"),
        ("NOT (NOT (a > 5))", "a > 5"),
        ("NOT (a > 5 AND x > 3)", "a <= 5 OR x <= 3"),
        ("NOT (a > 5 OR x > 3)", "a <= 5 AND x <= 3"),
        ("(a > 5) IS TRUE", "a > 5"),
        ("(a > 5) IS NOT TRUE", "a <= 5 OR a IS NULL"),
        ("(a > 5) IS NULL", "a IS NULL"),
        ("(a > 5) = FALSE", "a <= 5"),
        ("(a > 5 AND p) IS NOT FALSE", "(a > 5 OR a IS NULL) AND p IS NOT FALSE"),
        ("a <=> 5", "a = 5"),
        ("NOT a <=> 5", "a <> 5 OR a IS NULL"),
        ("a IS DISTINCT FROM NULL", "a IS NOT NULL"),
        ("a <=> a", "TRUE"),
        ("a = a", "a IS NOT NULL"),
        ("a <> a", "FALSE"),
        ("p = TRUE", "p"),
        ("p <> TRUE", "NOT p"),
        ("p > FALSE", "p"),
        ("p IN (TRUE, FALSE)", "p IS NOT NULL"),
        ("p IS NOT FALSE", "p IS NOT FALSE"),
        ("b IN (9007199254740993, 9007199254740992)", "b IN (9007199254740992, 9007199254740993)"),
        ("a < b", "a < b"),
        ("b > a", "a < b"),
        ("NOT b <= a", "a < b"),
        ("a < b OR a = b", "a <= b"),
        ("NOT (a < b) AND a <> b", "a > b"),
        ("x > -0.0", "x > 0"),
        ("x > 1E3", "x > 1000"),
        ("x = 0.1D OR x = 1E300", "x IN (0.1, 1E+300D)"),
        ("d > 1.555", "d > 1.5"),
        ("s >= ''", "s IS NOT NULL"),
        ("s < 'é' AND s > 'z'", "s > 'z' AND s < 'é'"),
        ("day >= '2024-02-01' AND day < DATE '2024-03-01'", "day >= DATE '2024-02-01' AND day < DATE '2024-03-01'"),
        ("day > DATE '2024-01-31'", "day >= DATE '2024-02-01'"),
        ("s NOT LIKE 'a%'", "NOT s LIKE 'a%'"),
        ("s NOT LIKE 'a%' ESCAPE '!'", "NOT s LIKE 'a%' ESCAPE '!'"),
        ("'A' = upper(s) OR upper(s) = 'B'", "upper(s) IN ('A', 'B')"),
        ("hour(ts) >= 8 AND hour(ts) < 8", "FALSE"),
        ("CAST(s AS INT) > 5.5", "CAST(s AS INT) > 5"),
        ("x * b > 3 AND x * b > 2", "x * b > 3"),
        ("a > 3 AND (a > 2 OR p)", "a > 3"),
        ("a > 3 AND (a < 2 OR p)", "a > 3 AND p"),
        ("a > 3 OR (a > 4 AND p)", "a > 3"),
        ("a > 3 OR (a <= 3 AND p)", "a <= 3 AND p OR a > 3"),
        ("a > 3 OR ((a > 3) IS NOT TRUE AND p)", "a > 3 OR p"),
        ("(a > 3 OR p) AND (a > 2 OR p OR q)", "a > 3 OR p"),
        ("1 = 1 AND a > 5", "a > 5"),
        ("'a' = 'b' OR a > 5", "a > 5"),
        ("a > NULL OR a > 5", "a > 5"),
        ("a > 3000000000", "FALSE"),
        ("a < 3000000000", "a IS NOT NULL"),
        ("a > 5 AND NOT a <= 8 AND s = 'u' AND s IN ('u', 'v')", "a > 8 AND s = 'u'"),
        ("s IN ('it\\'s', 'b', 'it\\'s')", "s IN ('b', 'it\\'s')"),
    ],
)
def test_spellings_have_one_normal_form(written: str, normal: str) -> None:
    assert read(written).sql == normal


@pytest.mark.parametrize(
    "written",
    [
        "FALSE",
        "NULL",
        "a > 5 AND a < 3",
        "a = 1 AND a = 2",
        "a IS NULL AND a > 3",
        "a > 5 AND a < 6",
        "p AND NOT p",
        "a = b AND a < b",
        "s LIKE 'a%' AND NOT s LIKE 'a%'",
        "a > 5 AND (a = 1 OR a = 2 AND p)",
        "NOT (a = a)",
        "(p OR q) AND NOT p AND NOT q",
        "(a > 1 OR p) AND (a <= 1 OR q) AND NOT (p AND a <= 1 OR q AND a > 1)",
    ],
)
def test_contradictions_are_never_true(written: str) -> None:
    assert read(written).is_never
    assert read(written).sql == "FALSE"


@pytest.mark.parametrize(
    "written",
    [
        "TRUE",
        "a > 5 OR a <= 5 OR a IS NULL",
        "p IS NOT TRUE OR p",
        "(a > b) IS NULL OR a > b OR a <= b",
        "(s LIKE 'a%') IS NOT NULL OR (s LIKE 'a%') IS NULL",
        "a <=> a",
        "NULL IS NULL",
    ],
)
def test_tautologies_are_always_true(written: str) -> None:
    assert read(written).is_always
    assert read(written).sql == "TRUE"


@pytest.mark.parametrize(
    "written", ["a > 5 OR a <= 5", "p OR NOT p", "NOT (a IS NULL AND a > 3)", "a = a", "s LIKE '%'", "x >= x"]
)
def test_what_null_does_not_satisfy_is_not_always_true(written: str) -> None:
    assert not read(written).is_always


@pytest.mark.parametrize(
    "written",
    [
        "s > 5",  # Spark reads the string as a number
        "a = '5'",
        "b > 9007199254740992D",  # as doubles, in which bigints are rounded
        "b IN (9007199254740993, 1.5D)",
        "f > 16777217",  # a float or a double, depending on the session
        "d > 1.5D",
        "s = 'it\\'s'",
        "ts > TIMESTAMP '2024-01-01 00:00:00'",
        "x > 1E999D",
        "x > 0.1F",
        "a > 300Y",
        "d > 1.00000000000000000000000000000000000001",
        "p = 1",
        "day > TIMESTAMP '2024-01-01 00:00:00'",
        "day = '2024-1-1'",
        "day = DATE '2024-02-30'",
    ],
)
def test_a_literal_whose_meaning_is_not_certain_stays_as_it_is(written: str) -> None:
    assert read(written).sql == written


def test_what_may_fail_comes_last_and_in_its_order() -> None:
    assert read("b / a > 1 AND a <> 0").sql == "a <> 0 AND b / a > 1"
    first, second = "size(split(s, ',')) > 2", "CAST(s AS INT) > 1"
    forth, back = read(f"{first} AND {second}"), read(f"{second} AND {first}")
    assert (forth.sql, back.sql) == (f"{first} AND {second}", f"{second} AND {first}")
    assert forth == back


def test_a_guard_is_a_case_where_predicates_are_computed_together() -> None:
    assert read("a <> 0 AND b / a > 1").guarded_sql == "CASE WHEN a <> 0 THEN b / a > 1 END"
    assert read("a = 0 OR p OR b / a > 1").guarded_sql == "CASE WHEN a = 0 OR p THEN TRUE ELSE b / a > 1 END"
    assert read("a > 5 OR p").guarded_sql == "a > 5 OR p"


def test_a_predicate_that_is_too_deep_is_one_condition() -> None:
    stream = Stream("s", {"p": DataType.parse("boolean")})
    deep = "(" * 3_000 + "p" + ")" * 3_000
    predicate = analyse(Expression(deep, ("p",)), stream)
    assert predicate.expression == Expression(f"({deep})", ("p",))
    assert not predicate.is_always
    assert not predicate.is_never


def test_long_lists_and_chains_are_read() -> None:
    chain = read(" OR ".join(f"a = {2 * index}" for index in range(500)))
    assert chain == read(f"a IN ({', '.join(str(2 * index) for index in range(500))})")


def test_columns_of_a_predicate_are_those_that_matter() -> None:
    assert read("a > 5 AND (p OR NOT p IS NOT NULL OR q) AND upper(s) = 'A'").expression.columns == ("a", "p", "q", "s")
    assert read("a > 5 AND (a > 4 OR q)").expression.columns == ("a",)


@pytest.mark.parametrize(
    ("narrow", "wide"),
    [
        ("a > 7", "a > 5"),
        ("a = 7", "a > 5 AND a < 10"),
        ("a > 7 AND s = 'u'", "s IN ('u', 'v')"),
        ("a > 7", "a IS NOT NULL"),
        ("a > 7 AND p", "a > 7 OR q"),
        ("a = 1 AND p OR a = 2 AND q", "a IN (1, 2)"),
        ("a = 1 AND p OR a = 2 AND q", "p OR q"),
        ("a < b", "a <= b"),
        ("a > 5 AND a < 3", "p"),
        ("p", "TRUE"),
    ],
)
def test_implied(narrow: str, wide: str) -> None:
    assert implies(read(narrow), read(wide))
    assert not implies(read(wide), read(narrow))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("a > 7", "a < 5"),
        ("a > 7", "a IS NULL"),
        ("s = 'u' AND p", "s = 'v' AND p"),
        ("a < b", "a >= b"),
        ("a < 5 AND (p OR q)", "NOT p AND NOT q"),
        ("p", "NOT p"),
    ],
)
def test_disjoint(left: str, right: str) -> None:
    assert read(f"({left}) AND ({right})").is_never
    assert not read(f"({left}) AND ({left})").is_never


def test_covering() -> None:
    assert covers([read("a > 5"), read("a < 7"), read("a IS NULL")])
    assert not covers([read("a > 5"), read("a < 7")])
    assert covers([read("a > 5 AND p"), read("a <= 5 OR a IS NULL"), read("p IS NOT TRUE")])
    assert not covers([])


@pytest.mark.parametrize(
    ("written", "shared"),
    [
        (["a > 5 AND s = 'u'", "a > 7 AND s = 'u'"], "a > 5 AND s = 'u'"),
        (["a = 1", "a = 2 AND p"], "a IN (1, 2)"),
        (["a > 5", "a < 3"], "a NOT IN (3, 4, 5)"),
        (["a > 50", "a < 30"], "a < 30 OR a > 50"),
        (["a > 5", "a < 8"], "a IS NOT NULL"),
        (["a > 5", "a IS NULL"], "a > 5 OR a IS NULL"),
        (["a > 5", "p"], None),
        (["a > 5", "TRUE"], None),
        (["a > 5", "FALSE"], "a > 5"),
        (["a > 5 AND p OR a > 7 AND q", "a > 6"], "a > 5"),
        (["(p OR q) AND a > 1", "p AND b > 1"], "p OR q"),
        (["FALSE"], "FALSE"),
        ([], None),
    ],
)
def test_what_predicates_have_in_common(written: list[str], shared: str | None) -> None:
    found = common([read(each) for each in written])
    assert (None if found is None else found.sql) == shared


def test_many_stretches_in_common_are_one() -> None:
    found = common([read(f"a > {10 * index} AND a < {10 * index + 5}") for index in range(30)])
    assert found is not None
    assert found.sql == "a > 0 AND a <= 294"


@pytest.mark.parametrize(
    ("written", "most"),
    [
        ([], 1),
        (["TRUE", "FALSE", "a > 5 AND a < 3"], 1),
        (["a > 5"], 2),
        (["a > 5", "a >= 6", "NOT (a <= 5)"], 2),
        ([f"a > {index}" for index in range(10)], 11),
        ([f"s = '{index}'" for index in range(10)], 11),
        (["a > 5", "a <= 5"], 3),  # and neither, for NULL
        (["a > 5", "a <= 5", "a IS NULL"], 3),
        (["a > 5", "x > 5"], 4),
        (["a > 5", "a > 7", "x > 5", "s = 'u'"], 12),
        ([f"s = '{index}' AND x > {index}" for index in range(100)], 101),
        ([f"s LIKE '{index}%'" for index in range(5)], 32),
        (["a > 5 AND x > 5", "a > 5"], 3),
        (["a > 5 AND x > 5", "a <= 5 AND x > 5", "x <= 5"], 4),
    ],
)
def test_most_signatures(written: list[str], most: int) -> None:
    assert most_signatures([read(each) for each in written]) == most


def test_signatures_that_are_too_many_are_estimated() -> None:
    assert most_signatures([read(f"s LIKE '{index}%'") for index in range(200)]) == 2.0**200
    mixed = [read(f"(x > {index} OR s = '{index % 7}') AND a < {index} AND b > {index}") for index in range(100)]
    assert 1e4 < most_signatures(mixed) < 1e8


def test_equal_predicates_are_one_key() -> None:
    assert len({read("a > 5 AND p"), read("p AND 5 < a"), read("NOT (NOT p OR a <= 5)")}) == 1
    assert isinstance(read("a > 5"), Predicate)
    assert str(read("5 < a")) == "a > 5"
