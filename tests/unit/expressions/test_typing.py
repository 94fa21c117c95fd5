"""Types of expressions over aggregates, and what is left to Spark."""

from __future__ import annotations

import pytest

from golden.plans import json_of, plan_of, text_of
from support.expressions import read
from windloom.expressions.types import NotKnownError
from windloom.plan.outputs import why_spark


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("max(i) + max(j)", "int"),
        ("max(i) + max(l)", "bigint"),
        ("max(i) / max(j)", "double"),
        ("max(i) DIV max(j)", "bigint"),
        ("max(g) + max(i)", "double"),
        ("max(g) + max(g)", "float"),
        ("max(c) + max(d)", "decimal(21,2)"),
        ("max(c) * 2", "decimal(12,2)"),
        ("max(c) * max(i)", "decimal(21,2)"),
        ("max(d) / max(l)", "decimal(38,20)"),
        ("max(w) * max(w)", "decimal(38,6)"),
        ("max(c) * max(k)", "double"),
        ("max(k) > 2.5", "boolean"),
        ("coalesce(max(i), max(c))", "decimal(12,2)"),
        ("CASE WHEN max(b) THEN max(i) ELSE 2.5 END", "decimal(11,1)"),
        ("nullif(max(i), max(l))", "int"),
        ("greatest(max(i), max(k), 1L)", "double"),
        ("round(max(c), 1)", "decimal(10,1)"),
        ("round(max(l), 2)", "bigint"),
        ("floor(max(k))", "bigint"),
        ("ceil(max(c))", "decimal(9,0)"),
        ("sqrt(max(i))", "double"),
        ("CAST(max(k) AS int)", "int"),
        ("coalesce(max(s), 'a')", "string"),
    ],
)
def test_a_result_has_the_type_that_spark_gives_it(text: str, kind: str) -> None:
    assert read(text).node.kind.name == kind


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("power(max(k), 2)", "power()"),
        ("max(s) || 'a'", "||"),
        ("max(s) > 1", "string beside int"),
        ("max(p) > max(t)", "date beside timestamp"),
        ("max(c) % 2", "% of decimals"),
        ("CAST(max(k) AS decimal(10,2))", "CAST of double to decimal(10,2)"),
        ("CAST(max(l) AS string)", "CAST of bigint to string"),
        ("max(p) - max(p)", "- of date"),
        ("round(max(k), max(i))", "round() to a number of digits that is no literal"),
        ("round(max(k), -2)", "round() to -2 digits"),
        ("max(f) IN (0, 1)", "IN of floating-point numbers that may be zero or NaN"),
        ("max(w) > max(l) + max(w)", "decimal(38,10) beside decimal(38,9): more than 38 digits"),
        ("abs(max(w))", "abs() of decimal(38,10)"),
        ("max(s) LIKE 'a'", "… LIKE …"),
        ("max(t) > TIMESTAMP '2024-01-01'", "TIMESTAMP '2024-01-01'"),
    ],
)
def test_what_is_not_surely_the_same_is_left_to_spark_with_a_reason(text: str, why: str) -> None:
    with pytest.raises(NotKnownError) as caught:
        read(text)
    assert str(caught.value) == why


CATALOG = """
CREATE QUERY here AS
  SELECT symbol, max(price) - min(price) AS spread FROM trades [TUMBLE 1 minute] GROUP BY symbol HAVING count(*) > 5;
CREATE QUERY there AS SELECT symbol, power(max(price), 2) AS p FROM trades [TUMBLE 1 minute] GROUP BY symbol;
CREATE QUERY filtered AS SELECT max(price) AS p FROM trades [TUMBLE 1 minute] HAVING exp(max(price)) > 1;
CREATE QUERY plain AS SELECT max(price) AS p FROM trades [TUMBLE 1 minute];
"""


def test_explain_tells_who_evaluates_the_outputs_of_a_query_and_why_spark() -> None:
    plan = plan_of(CATALOG)
    said = {name: " ".join(text_of(plan, query=name).split()) for name in ("here", "there", "filtered", "plain")}
    assert "evaluated without Spark" in said["here"]
    assert "evaluated by Spark, in one job with other such queries: Windloom does not" in said["there"]
    assert "does not evaluate power() in 'p' itself" in said["there"]
    assert "does not evaluate exp() in HAVING itself" in said["filtered"]
    assert "evaluated" not in said["plain"]


def test_json_tells_the_same_of_every_shape() -> None:
    plan = plan_of(CATALOG)
    told = json_of(plan)
    shapes = {planned.name: told["shapes"][planned.shape] for planned in plan.queries}
    assert shapes["here"]["evaluated_by"] == "windloom"
    assert (shapes["there"]["evaluated_by"], shapes["there"]["why_spark"]) == ("spark", "power() in 'p'")
    assert (shapes["plain"]["evaluated_by"], shapes["plain"]["why_spark"]) == (None, None)
    assert [why_spark(plan.shapes[plan.find(name)[2].shape]) is None for name in ("here", "there")] == [True, False]
