"""Spark reads the canonical text of an expression as it reads the text the user wrote."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.drawing import examples
from windloom.aggregates.equivalents import EQUIVALENTS, REFUSED, WITHIN_GROUP
from windloom.aggregates.registry import FUNCTIONS
from windloom.errors import QueryError
from windloom.language.select import parse_query
from windloom.language.sql import syntax
from windloom.model import DataType, Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_COLUMNS = {
    "ts": "timestamp",
    "day": "date",
    "a": "int",
    "b": "int",
    "c": "bigint",
    "x": "double",
    "y": "double",
    "d": "decimal(10,2)",
    "s": "string",
    "t": "string",
    "p": "boolean",
    "q": "boolean",
    "arr": "array<int>",
    "m": "map<string,int>",
    "st": "struct<f:int,g:string>",
    "true": "int",
}
_ROWS = """
    (TIMESTAMP '2024-02-29 23:59:59.5', DATE '2024-02-29', 7, 3, 9000000000, 1.5D, -0.25D, 12.30BD, 'a,b%c', 'it''s',
     true, false, array(1, 2, 3), map('k', 5), named_struct('f', 4, 'g', 'z'), 8),
    (TIMESTAMP '1969-12-31 23:00:00', DATE '1969-12-31', -7, 2, -1, -1e15D, 4.0D, -0.01BD, '  Xx  ', 'line\\nbreak',
     false, NULL, array(-1), map('k', NULL), named_struct('f', NULL, 'g', 'q'), 9),
    (NULL, NULL, NULL, 1, NULL, NULL, 1.0D, NULL, NULL, '', NULL, true, NULL, NULL, NULL, NULL)
"""

EXPRESSIONS = r'''
x / y
a / b
a div b
a % b
mod(a, b)
pmod(a, -3)
- a - -b
-(-x) * -(+a)
-a * b + c % 4 - 2
a - (b - c) - (a - b)
(a + b) * c
x / (y / 2) / 2
2 + a || s
s || t || 'x'
a & 6 | b
(a | b) & 6
a ^ (b ^ 1)
~a & b
a << 2
a + 1 >> 1
(a & b) = 2
a = b OR p AND NOT q
(a = b OR p) AND NOT (q OR p)
NOT p = q
not (not p)
! p
a <=> NULL
a IS NOT DISTINCT FROM b
a IS DISTINCT FROM NULL
a == 7 AND a != b AND a <> 0
a > b IS NULL
(a > b) IS NOT TRUE
x + 1 IS NULL
a BETWEEN b - 10 AND b + 10
a NOT BETWEEN 1 AND 2 OR p
a IN (1, 7, b)
a NOT IN (1, NULL)
NOT (a IN (1, 2))
(a, b) IN ((7, 3), (1, 2))
s LIKE 'a%c'
s LIKE 'a,b\%%'
s NOT LIKE 'a!%' ESCAPE '!'
s LIKE ANY ('a%', 'b%')
s NOT LIKE ALL ('a%', '%c')
NOT (s LIKE ALL ('a%', 'b%'))
NOT s LIKE ANY ('a%', 'b%')
s ILIKE '%XX%'
s RLIKE '^\\s+X'
s RLIKE r'^\s+X'
NOT s REGEXP 'b'
regexp_extract(s, '(.),(.)', 1)
regexp_extract(s, '(.),(.)')
regexp_replace(s, '\\s', '')
'it\'s' || "it's" || 'it''s'
'a' 'b'
"say ""hi"""
'tab\there\\n \d \u0041 \101'
'100\% \_'
1e15 + 1.5E-3
1.0BD + 2.50
1.10 = d
.5 + 5.
10L * 3S + 2Y
-128Y
-9223372036854775808L
1.5F + 1.5D
12345678901234567890
X'1F'
CAST(a AS STRING) || cast(x as string)
cast(s AS varchar(3))
a::bigint + 1
try_cast(s AS INT)
cast(d AS decimal(20, 1))
cast('{"f": 1}' AS string)
cast(arr AS array<bigint>)
cast(st AS struct<f: bigint, g: string>).f
cast(ts AS timestamp_ntz)
cast(ts AS date)
cast(a AS long) + cast(b AS short) + cast(b AS byte)
CASE WHEN a > 1 THEN 'x' WHEN a IS NULL THEN 'n' ELSE 'y' END
CASE a WHEN 7 THEN b END + 1
if(a > 1, a, b)
coalesce(a, b)
nvl(a, b) + ifnull(a, b) + nvl2(a, b, 2)
nullif(a, 7)
try_divide(a, 0)
ts + INTERVAL 1 HOUR
ts - interval '1' day
ts + interval 1 day 2 hours
ts + INTERVAL '1 02:03:04' DAY TO SECOND
ts - INTERVAL '3 hours'
ts - INTERVAL -2 minutes
day + INTERVAL '1-2' YEAR TO MONTH
ts > TIMESTAMP '2020-01-01 00:00:00' AND day >= date '2020-01-01'
ts > timestamp_ntz '2020-01-01 00:00:00'
date_trunc('hour', ts)
trunc(day, 'MM')
date_format(ts, 'yyyy-MM-dd HH')
date_add(day, 1)
date_add(HOUR, 1, ts)
timestampadd(minute, 5, ts)
timestampdiff(hour, ts, TIMESTAMP '2020-01-01 00:00:00')
datediff(day, date '2020-01-01')
datediff(day, ts, TIMESTAMP '2020-01-01 00:00:00')
year(ts) * 100 + month(ts) + dayofweek(ts)
EXTRACT(hour FROM ts) + extract(DAY from ts)
date_part('minute', ts)
unix_timestamp(ts)
from_unixtime(c, 'yyyy')
to_timestamp('2020-01-01')
to_date('2020-01-01')
months_between(ts, day)
make_timestamp(2020, 1, 2, 3, 4, 5)
log(2, b) + log(b) + ln(b) + log10(b) + log2(b)
pow(b, 2) + power(b, 0.5)
round(x, 1) + bround(y, 1) + ceil(y) + floor(y)
greatest(a, b, 5) - least(a, b)
abs(a) + sign(x) + sqrt(abs(y))
trim(s)
trim(BOTH ' ' FROM s)
TRIM(LEADING 'a' FROM s)
trim('a' FROM s)
trim(trailing from s)
ltrim('a', s)
substring(s, 2, 3) || substr(s, 2)
substring(s FROM 2 FOR 2)
position('b' IN s)
position('b', s)
instr(s, 'b') + locate('b', s) + locate('b', s, 2)
overlay(s PLACING 'zz' FROM 2)
overlay(s PLACING 'zz' FROM 2 FOR 1)
left(s, 2) || right(s, 2)
upper(s) || lcase(t) || initcap(s)
replace(s, 'a', 'b')
char_length(s) + length(t)
concat_ws('-', s, t)
split(s, ',')[0]
format_number(x, 2)
hash(a, s)
xxhash64(s)
md5(s)
sha2(s, 256)
arr[0] + try_element_at(arr, 2)
m['k']
element_at(m, 'k')
st.f + 1
st.g || 'x'
named_struct('u', a, 'v', b).u
struct(a AS u, b).u
array(1, a)[1]
size(arr) + cardinality(m)
array_contains(arr, 2)
transform(arr, v -> v + a)
filter(arr, (v, i) -> v > i)
aggregate(arr, 0, (acc, v) -> acc + v)
exists(arr, v -> v = 2)
get_json_object('{"k": {"j": 1}}', '$.k.j')
from_json('{"k": 1}', 'k INT').k
isnan(x) OR isnull(x)
nanvl(x, 0)
bit_count(a) + shiftleft(a, 1) + shiftright(a, 1)
decode(a, 7, 'seven', 'other')
typeof(a)
s COLLATE UTF8_LCASE = 'A,B%C'
`true` + 1
'''.strip().splitlines()

_STREAM = Stream("events", {name: DataType.parse(kind) for name, kind in _COLUMNS.items()}, time="ts")


def canonical(expression: str) -> str:
    query = parse_query("q", f"SELECT count(*) FROM events [TUMBLE 1 hour] WHERE {expression}", {"events": _STREAM})
    assert query.where is not None
    return query.where.sql


def test_canonical_text_means_the_same_to_spark(spark: SparkSession) -> None:
    written = ", ".join(f"{expression} AS w{index}" for index, expression in enumerate(EXPRESSIONS))
    rewritten = ", ".join(f"{canonical(expression)} AS w{index}" for index, expression in enumerate(EXPRESSIONS))
    table = f"VALUES {_ROWS} AS events({', '.join(f'`{name}`' for name in _COLUMNS)})"
    first, second = (spark.sql(f"SELECT {columns} FROM {table}") for columns in (written, rewritten))
    types = [(field.name, field.dataType.simpleString()) for field in first.schema]
    assert [(field.name, field.dataType.simpleString()) for field in second.schema] == types
    wanted, found = first.collect(), second.collect()
    for index, expression in enumerate(EXPRESSIONS):
        shown = f"{expression}  →  {canonical(expression)}"
        assert repr([row[index] for row in wanted]) == repr([row[index] for row in found]), shown


def test_canonical_text_is_a_fixed_point() -> None:
    for expression in EXPRESSIONS:
        text = canonical(expression)
        assert canonical(text) == text


OPERATORS = "+ - * / % DIV || & | ^ << >> = == <> != < <= > >= <=> AND OR".split()  # noqa: SIM905 - a table of words
ATOMS = st.sampled_from(["a", "b", "c", "1", "10L", "1.5", "'x'", "NULL", "TRUE", "arr[0]", "st.f", "-a", "- 1", "~b"])


def _chains(operands: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    links = st.lists(st.builds(" {} {}".format, st.sampled_from(OPERATORS), operands), max_size=3).map("".join)
    chain = st.builds("{}{}".format, operands, links)
    negation = st.sampled_from(["", "NOT "])
    return st.one_of(
        chain,
        chain.map("({})".format),
        chain.map("NOT {}".format),
        chain.map("-({})".format),
        st.builds("f({}, {})".format, chain, chain),
        st.builds("CASE WHEN {} THEN {} END".format, chain, chain),
        st.builds("CAST({} AS INT)".format, chain),
        st.builds("{}::STRING".format, operands),
        st.builds("{} {}IN ({}, {})".format, chain, negation, chain, chain),
        st.builds("{} {}BETWEEN {} AND {}".format, chain, negation, chain, chain),
        st.builds("{} {}LIKE {}".format, chain, negation, operands),
        st.builds("{} IS {}{}".format, chain, negation, st.sampled_from(["NULL", "TRUE"])),
        st.builds("{} IS {}DISTINCT FROM {}".format, chain, negation, operands),
    )


def test_random_operators_are_read_as_spark_reads_them_or_refused(spark: SparkSession) -> None:
    parser = spark._jsparkSession.sessionState().sqlParser()

    def tree(text: str) -> str:
        # NOT (x IS NULL) and x IS NOT NULL are two trees with one meaning; the canonical text is the second.
        return str(parser.parseExpression(text).toString()).replace("NOT isnull(", "isnotnull(")

    @settings(max_examples=examples(400), deadline=None, database=None)
    @given(st.recursive(ATOMS, _chains, max_leaves=8))
    def check(text: str) -> None:
        try:
            rewritten = canonical(text)
        except QueryError:
            return
        try:
            wanted = tree(text)
        except Exception:
            return  # Spark cannot read it at all
        assert tree(rewritten) == wanted, rewritten

    check()


def functions_of_spark(spark: SparkSession, *kinds: str) -> set[str]:
    registry = spark._jsparkSession.sessionState().functionRegistry()
    names, found = registry.listFunction().iterator(), set()
    while names.hasNext():
        info = registry.lookupFunction(names.next()).get()
        if info.getGroup() in kinds:
            found.add(str(info.getName()))
    return found


def test_no_aggregate_or_generator_of_spark_passes_as_a_scalar_function(spark: SparkSession) -> None:
    known = {*FUNCTIONS, *EQUIVALENTS, *WITHIN_GROUP, *REFUSED, *syntax.OF_ROWS, *syntax.GENERATORS}
    assert not functions_of_spark(spark, "agg_funcs", "window_funcs", "generator_funcs") - known


def test_the_page_lists_every_aggregate_of_spark_and_says_what_it_means_here(spark: SparkSession) -> None:
    page = Path("docs/language.md").read_text(encoding="utf-8")
    section = page.partition("### Spark's aggregates")[2].partition("\n### ")[0]
    rows = [line.strip("| ").split(" | ", 1) for line in section.splitlines() if line.startswith("| `")]
    here = {name: text for names, text in rows for name in re.findall(r"`(\w+)", names)}
    within = {name for names, _ in rows if "WITHIN" in names for name in re.findall(r"`(\w+)", names)}
    own = functions_of_spark(spark, "agg_funcs")
    assert own == set(here) & own, own - set(here)
    later = set(here) - own  # versions of Spark differ
    assert later <= set(REFUSED)
    for name, text in here.items():
        if name in within:
            assert text == f"`{WITHIN_GROUP[name].text}`"
        elif name in EQUIVALENTS:
            assert text == f"`{EQUIVALENTS[name].text}`"
        elif name in REFUSED:
            assert text == "refused; the message says what to do instead"
        else:
            assert text == "the same"
            assert name in FUNCTIONS


def test_every_scalar_function_of_spark_keeps_its_name(spark: SparkSession) -> None:
    own_grammar = {"cast", "try_cast", "extract", "trim", "substring", "substr", "position", "overlay", "if"}
    own_grammar.add("time_bucket")  # it is a window
    operators = {"!", "%", "&", "*", "+", "-", "/", "<", "<=", "<=>", "=", "==", ">", ">=", "^", "|", "||", "~", "!="}
    operators |= {"<>", "<<", ">>", ">>>", "and", "or", "not", "in", "between", "case", "when"}
    for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect():
        name = row[0].lower()
        if (
            name in own_grammar | operators
            or syntax.why_refused(name, 1)
            or name in {*FUNCTIONS, *EQUIVALENTS, *WITHIN_GROUP}
        ):
            continue
        assert canonical(f"{name.upper()}(a, s)") == f"{name}(a, s)"


@pytest.mark.parametrize("text", ["a = b < c", "a | b & c", "s || a + b", "a IN (1) = p", "a = b LIKE s", "p = NOT q"])
def test_chains_that_spark_reads_in_another_order_are_refused(text: str) -> None:
    with pytest.raises(QueryError, match="can be read in two ways"):
        canonical(text)
