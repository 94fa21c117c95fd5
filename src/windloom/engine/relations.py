"""Makes a relation from a DataFrame, or a function that returns the current one; each mistake has its own error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from windloom.engine.declare import check_columns, match_declaration
from windloom.errors import WindloomError, near_names
from windloom.model.relation import Relation
from windloom.model.stream import Stream
from windloom.model.types import DataType
from windloom.spark.api import DataFrame
from windloom.spark.errors import as_windloom_errors
from windloom.spark.frames import column_types

#: A relation as the user gives it: one version for good, or a function that returns the current one.
Given = DataFrame | Callable[[], DataFrame]

_EXAMPLE = "for example loom.relation('person', lambda: spark.read.parquet(path))"


@dataclass(frozen=True, slots=True)
class RelationSource:
    """A relation with its data."""

    relation: Relation
    given: Given

    @property
    def is_fixed(self) -> bool:
        """Whether the relation has one version for good."""
        return isinstance(self.given, DataFrame)

    def current(self) -> DataFrame:
        """Return the current version, with the columns of the relation."""
        frame = _frame_of(self.relation.name, self.given)
        columns, name = column_types(frame), self.relation.name
        for column, kind in self.relation.columns.items():
            if columns.get(column) != kind:
                raise WindloomError(
                    f"relation '{name}': its function gives another schema than before",
                    _difference(column, kind, columns),
                    "give a DataFrame with the columns of the first one; for others, register a relation of its own",
                )
        return (
            frame
            if list(columns) == list(self.relation.columns)
            else frame.select(*["`" + column.replace("`", "``") + "`" for column in self.relation.columns])
        )


def make_relation(name: str, given: Given, declared: Relation | None, retroactive: bool | None) -> RelationSource:
    """Return the relation, with the columns that are declared or that its data has now."""
    if not name or not isinstance(name, str):
        raise WindloomError("a relation needs a name", f"it was given {name!r}", "loom.relation('person', df)")
    if retroactive is not None and not isinstance(retroactive, bool):
        raise WindloomError(
            f"relation '{name}': retroactive says yes or no", f"it is {retroactive!r}", "use True or False"
        )
    if not isinstance(given, DataFrame) and not callable(given):
        raise WindloomError(
            f"relation '{name}' needs a Spark DataFrame, or a function that gives one",
            f"it was given a {type(given).__module__}.{type(given).__qualname__}",
            _EXAMPLE,
        )
    if retroactive is None:
        retroactive = True if declared is None else declared.is_retroactive
    frame = _frame_of(name, given)
    check_columns(f"relation '{name}'", frame, declared)
    if declared is not None:
        frame = match_declaration(declared, frame)
        matched: Given = (
            frame if isinstance(given, DataFrame) else (lambda: match_declaration(declared, _frame_of(name, given)))
        )
        return RelationSource(Relation(name, dict(declared.columns), is_retroactive=retroactive), matched)
    return RelationSource(Relation(name, column_types(frame), is_retroactive=retroactive), given)


def refuse_name_of_other(name: str, what: str, others: Mapping[str, Stream]) -> None:
    """Raise if a stream or relation already has the name: FROM calls both by their names."""
    same_name = next((other for other in others if str(name).lower() == other.lower()), None)
    if same_name is not None:
        other = "relation" if others[same_name].is_relation else "stream"
        raise WindloomError(
            f"{what} '{name}' cannot be registered",
            f"there is a {other} '{same_name}', and FROM calls both by their names",
            "give one of them another name",
        )


def refuse_other_spelling(name: str, what: str, known: Mapping[str, Stream]) -> None:
    """Raise if a stream or relation has the name in other letters: FROM could not tell which of the two is meant."""
    same_name = next((each for each in known if str(name).lower() == each.lower() and name != each), None)
    if same_name is not None:
        raise WindloomError(
            f"{what} '{name}' cannot be registered",
            f"there is a {what} '{same_name}', and names are compared without case",
            f"give it another name; if it is the same {what}, call it '{same_name}'",
        )


def _frame_of(name: str, given: Given) -> DataFrame:
    frame = given
    if not isinstance(given, DataFrame):
        frame = _called(name, given)
    if not isinstance(frame, DataFrame):
        raise WindloomError(
            f"relation '{name}': its function gives no Spark DataFrame",
            f"it gave a {type(frame).__module__}.{type(frame).__qualname__}",
            _EXAMPLE,
        )
    if frame.isStreaming:
        raise WindloomError(
            f"relation '{name}' is a streaming DataFrame",
            "a relation is a table that is read as a whole, version by version",
            f"read it with spark.read; or register it as a stream: loom.stream('{name}', df, time=…)",
        )
    return frame


def _called(name: str, given: Callable[[], DataFrame]) -> DataFrame:
    try:
        with as_windloom_errors(f"the function of relation '{name}'"):
            return given()
    except WindloomError:
        raise
    except Exception as error:  # whatever the user's own code raises
        raise WindloomError(
            f"relation '{name}': its function failed",
            f"{type(error).__name__}: {error}",
            "mend it; a stream that stopped goes on where it was when it is started again with its checkpoint",
        ) from error


def _difference(column: str, kind: DataType, columns: dict[str, DataType]) -> str:
    if column in columns:
        return f"column '{column}' was {kind}, and is {columns[column]}"
    return f"column '{column}' is missing: {near_names(column, list(columns))}"
