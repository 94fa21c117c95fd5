"""Random joins and rows for them: small numbers, few and skewed keys, NULLs, so that every corner is hit often.

What is drawn decomposes: a join that the language must refuse is not drawn here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import permutations
from typing import Any

from hypothesis import strategies as st

from support.join_texts import Asked, Hung, Read, Residual
from windloom.model import Aggregate, DataType, Expression, ExpressionKey, JoinKind, Relation, Stream
from windloom_tools.oracle.scalars import names_in

Row = dict[str, Any]
#: Picks one of several, so that both Hypothesis and a seeded generator can drive what is random here.
Choose = Callable[[Sequence[Any]], Any]

COLUMNS = {
    name: DataType.parse(kind)
    for name, kind in {
        "tick": "bigint",
        "k": "string",
        "f": "double",  # a key with NaN and zeros of both signs
        "i": "int",
        "n": "bigint",
        "x": "double",  # finite: a product of sums is not the sum of products where there are infinities
        "z": "double",
        "d": "decimal(12,2)",
        "b": "boolean",
    }.items()
}
STREAMS = {name: Stream(name, COLUMNS, "tick", time_unit="us") for name in ("s", "t", "u")}
#: Streams and relations in one: a relation has the columns of a stream but for the time.
RELATIONS = {
    name: Relation(name, {column: kind for column, kind in COLUMNS.items() if column != "tick"}) for name in ("r", "v")
}
#: The same, not retroactive.
ATTACHED = {name: replace(RELATIONS["r"], name=name, is_retroactive=False) for name in ("p", "q")}
TYPES = {ExpressionKey(stream, name): kind for stream in STREAMS for name, kind in COLUMNS.items()}

_VALUES: dict[str, list[Any]] = {
    "k": ["a", "a", "a", "a", "b", "c", None],
    "f": [1.0, 1.0, math.nan, 0.0, -0.0, None],
    "i": [0, 1, 1, 2, 3, -4, 5, None],
    "n": [0, 1, -7, 2**20, 2**40, -(2**40), None],
    "x": [0.0, 0.1, -0.25, 3.0, 1e6, -1e6, 7.7, None],
    "z": [0.0, -0.0, 0.1, 1e15, -1e15, 3.0, math.nan, math.inf, None],
    "d": [*(Decimal(cents).scaleb(-2) for cents in (0, 1, -250, 99_999, 10**7)), None],
    "b": [True, True, False, None],
}
_KEYS = ["k", "k", "k", "i", "f", "b"]
_RESIDUALS = [
    Residual("{p}.i < {c}.i", "i", "i"),
    Residual("{p}.i + {c}.i > 2", "i", "i"),
    Residual("{p}.k <> {c}.k", "k", "k"),
    Residual("({p}.b OR {c}.i > 0)", "b", "i"),
]
_CONDITIONS = ["{c}.b", "{c}.i > 0", "{c}.x IS NOT NULL", "({c}.b OR {c}.i <> 1)", "{c}.k IN ('a', 'b')"]
_MOMENTS = ["var_pop", "var_samp", "stddev_pop", "stddev_samp"]


def random_row(choose: Choose, tick: int) -> Row:
    return {"tick": tick, **{name: choose(values) for name, values in _VALUES.items()}}


def random_version(choose: Choose, most: int = 8) -> list[Row]:
    """The rows of a relation: keys repeat, some are NULL, and there may be none."""
    count = choose([0, 1, *range(2, most + 1)])
    return [{name: choose(values) for name, values in _VALUES.items()} for _ in range(count)]


def random_rows(rng: random.Random, count: int, first: int = -12, last: int = 30) -> list[Row]:
    """In the order in which they come, some of them late."""
    ticks = sorted((rng.randint(first, last) for _ in range(count)), key=lambda tick: tick + rng.choice([0, 0, 0, 9]))
    return [random_row(rng.choice, tick) for tick in ticks]


def rows(most: int = 12) -> st.SearchStrategy[dict[str, list[Row]]]:
    """Rows of all streams."""
    values = {name: st.sampled_from(values) for name, values in _VALUES.items()}
    stream_rows = st.lists(st.fixed_dictionaries({"tick": st.integers(-8, 18), **values}), max_size=most)
    return st.fixed_dictionaries(dict.fromkeys(STREAMS, stream_rows))


def versions(most: int = 8) -> st.SearchStrategy[dict[str, list[Row]]]:
    """Rows of all relations."""
    relation_rows = st.lists(
        st.fixed_dictionaries({name: st.sampled_from(own) for name, own in _VALUES.items()}), max_size=most
    )
    return st.fixed_dictionaries(dict.fromkeys([*RELATIONS, *ATTACHED], relation_rows))


@st.composite
def joins(
    draw: st.DrawFn, most: int = 4, landmarks: bool = True, exact: bool = False, relations: Sequence[str] = ()
) -> Asked:
    return Drawing(lambda options: draw(st.sampled_from(options)), landmarks, exact, relations).asked(most)


@dataclass
class Drawing:
    """Draws joins. With `exact`, aggregates are only those that every SQL engine defines alike.

    With `relations`, what is joined to the first stream may be one of these relations, and one of them is.
    """

    choose: Choose
    landmarks: bool = True
    exact: bool = False
    relations: Sequence[str] = ()
    _versions: set[str] = field(default_factory=set)  # aliases of relations
    _attached: set[str] = field(default_factory=set)  # of those that are not retroactive

    def _once_in(self, count: int) -> bool:
        return bool(self.choose(range(count)) == count - 1)

    def asked(self, most: int = 4) -> Asked:
        slide = self.choose([1, 2, 3, 4, 5, 8])
        first = self._read("a", slide)
        visible, nullable, hung = ["a"], list[str](), list[Hung]()
        self._versions.clear()
        self._attached.clear()
        for alias in "bcd"[: self.choose([1, 1, 1, *range(1, most)])]:
            child = self._read(alias, slide) if self.relations else None
            # Tuples are joined with a relation that is not retroactive, and the rows of another relation are not.
            held = self._versions - self._attached
            is_attached = child is not None and child.stream in ATTACHED
            parent = self.choose([label for label in visible if not is_attached or label not in held])
            kind = self.choose([JoinKind.INNER, JoinKind.INNER, *JoinKind])
            # What hangs on a side that may be absent must be absent with it, or it is no tree of its own.
            is_absent = parent in nullable
            kind = JoinKind.LEFT if is_absent else kind
            hung.append(self._hung(kind, parent, child or self._read(alias, slide), is_absent))
            visible += [alias] if kind in (JoinKind.INNER, JoinKind.LEFT) else []
            nullable += [alias] if kind is JoinKind.LEFT else []
        sure = [alias for alias in visible if alias not in nullable]
        where = [(self.choose(sure), self.choose(_CONDITIONS)) for _ in range(self.choose([0, 0, 0, 1, 2]))]
        grouped = [(self.choose(visible), self.choose(["k", "f", "i", "b"])) for _ in range(self.choose([0, 1, 1, 2]))]
        having = self.choose([("<", 5), (">", 1), (">=", 3)]) if self._once_in(5) else None
        return Asked(
            first,
            slide,
            self.choose([0, 0, 1, -3, 7]),
            tuple(hung),
            tuple(where),
            tuple(dict.fromkeys(grouped)),
            self._aggregates(visible),
            having,
        )

    def _read(self, alias: str, slide: int) -> Read:
        if self.relations and (alias == "b" or (alias != "a" and self._once_in(2))):
            self._versions.add(alias)
            relation = self.choose(self.relations)
            self._attached |= {alias} if relation in ATTACHED else set()
            return Read(relation, alias, None, is_relation=True)
        stream = self.choose(list(STREAMS))
        if self.landmarks and self._once_in(8):
            return Read(stream, alias, None)
        return Read(stream, alias, self.choose([slide, 2 * slide, 3 * slide, slide + 1, 12, 20, max(1, slide - 1)]))

    def _hung(self, kind: JoinKind, parent: str, child: Read, is_absent: bool) -> Hung:
        keys = [
            (key, key, self._once_in(5) and not is_absent) for key in {self.choose(_KEYS): None, **self._second_key()}
        ]
        residual = self.choose(_RESIDUALS) if self._once_in(5) else None
        condition = self.choose(_CONDITIONS) if self._once_in(4) else None
        return Hung(kind, parent, child, tuple(keys), residual, condition)

    def _second_key(self) -> dict[str, None]:
        return {self.choose(_KEYS): None} if self._once_in(4) else {}

    # ---- aggregates ---------------------------------------------------------------------------------------------

    def _aggregates(self, visible: list[str]) -> tuple[Aggregate, ...]:
        kinds = [self._one_sided, self._one_sided, self._count]
        kinds += [self._two_sided] * 2 if len(visible) > 1 else []
        kinds += [] if self.exact else [self._pick, self._listed]
        found = [self.choose(kinds)(visible) for _ in range(self.choose([1, 2, 3]))]
        return tuple(dict.fromkeys(found))

    def _filter(self, visible: list[str], aliases: Sequence[str]) -> Expression | None:
        """One condition, or one on each of two sides."""
        if not self._once_in(4):
            return None
        parts = [self.choose(["{c}.b", "{c}.i > 0", "{c}.k = 'a'"]).format(c=self.choose([*aliases, *visible]))]
        if self._once_in(3):
            parts.append(f"{self.choose(visible)}.i <> 1")
        return qualified(" AND ".join(dict.fromkeys(parts)))

    def _count(self, visible: list[str]) -> Aggregate:
        return Aggregate("count", where=self._filter(visible, visible))

    def _one_sided(self, visible: list[str]) -> Aggregate:
        alias, column = self.choose(visible), self.choose(["x", "z", "n", "i", "d", "b", "k"])
        functions = ["min", "max", "count"]
        functions += ["sum", "avg"] if column in "xznid" else []
        functions += _MOMENTS if column in "xi" else []
        functions += ["bool_and", "bool_or"] if column == "b" else []
        functions += ["bit_and", "bit_or"] if column in "ni" else []
        argument = qualified(f"{alias}.{column}")
        return Aggregate(self.choose(functions), argument, where=self._filter(visible, [alias]))

    def _two_sided(self, visible: list[str]) -> Aggregate:
        first, second = self.choose(list(permutations(visible, 2)))
        function = self.choose(["sum", "sum", "avg", "count", "min", "max"])
        columns = [("x", "x"), ("i", "i"), ("i", "x"), ("n", "i")]
        columns += [] if function in ("min", "max") else [("d", "d"), ("i", "d")]  # refused: extrema of decimals
        left, right = (f"{alias}.{column}" for alias, column in zip((first, second), self.choose(columns), strict=True))
        operator = self.choose(["*", "+", "-"])
        text = f"{left} {operator} {right}"
        if function in ("sum", "avg", "count") and self._once_in(3):
            text = self.choose(
                [f"{left} * {right} + {first}.i", f"2 * {left} - {right}", f"{left} * ({right} + {second}.i)"]
            )
        if len(visible) > 2 and function in ("sum", "avg") and self._once_in(3):
            text = " * ".join(f"{alias}.i" for alias in visible)
        return Aggregate(function, qualified(text), where=self._filter(visible, [first, second]))

    def _pick(self, visible: list[str]) -> Aggregate:
        alias = self.choose(visible)
        argument, by = (qualified(f"{alias}.{self.choose(['k', 'i', 'x', 'd'])}") for _ in range(2))
        by_time = [] if alias in self._versions else ["first", "last"]  # refused: a relation has no time
        function = self.choose(["min_by", "max_by", *by_time])
        where = self._filter(visible, [alias])
        return Aggregate(function, argument, by if function.endswith("_by") else None, where)

    def _listed(self, visible: list[str]) -> Aggregate:
        alias = self.choose(visible)
        function, parameters = self.choose([("count_distinct", ()), ("quantile", (0.5,)), ("quantile", (0.3,))])
        column = self.choose(["i", "x", "d"] if function == "quantile" else ["k", "i", "z", "b"])
        if self._once_in(3):
            function, parameters, column = "top", (2,), self.choose(["k", "i"])
        where = self._filter(visible, [alias])
        return Aggregate(function, qualified(f"{alias}.{column}"), where=where, parameters=parameters)


def qualified(text: str) -> Expression:
    """A qualified expression, as the language makes it."""
    names = names_in(text)
    return Expression(text, names, text if (text,) == names else None)
