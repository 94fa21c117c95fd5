"""What a query means, as immutable values: time, windows, types, expressions, predicates, aggregates, streams."""

from windloom.model.aggregate import Aggregate, Component, Function, Property, UserDefined
from windloom.model.clauses import Emission, Emits, Urgency
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import Join, Link, Side, WindowedStream
from windloom.model.predicate import Predicate, common, covers, implies
from windloom.model.query import Grouping, Output, Query
from windloom.model.rows import Reports, RowInput, RowQuery, Selection, SetKind, SetOperation
from windloom.model.stream import EnrichedStream, Enrichment, JoinKind, Relation, Stream, Version
from windloom.model.time import format_duration, parse_duration
from windloom.model.types import DataType, TypeKind
from windloom.model.windows import (
    LandmarkWindow,
    RowsWindow,
    SessionWindow,
    TimeWindow,
    VersionWindow,
    Window,
)

__all__ = [
    "Aggregate",
    "Component",
    "DataType",
    "Emission",
    "Emits",
    "EnrichedStream",
    "Enrichment",
    "Expression",
    "ExpressionKey",
    "Function",
    "Grouping",
    "Join",
    "JoinKind",
    "LandmarkWindow",
    "Link",
    "Output",
    "Predicate",
    "Property",
    "Query",
    "Relation",
    "Reports",
    "RowInput",
    "RowQuery",
    "RowsWindow",
    "Selection",
    "SessionWindow",
    "SetKind",
    "SetOperation",
    "Side",
    "Stream",
    "TimeWindow",
    "TypeKind",
    "Urgency",
    "UserDefined",
    "Version",
    "VersionWindow",
    "Window",
    "WindowedStream",
    "common",
    "covers",
    "format_duration",
    "implies",
    "parse_duration",
]
