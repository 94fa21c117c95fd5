"""What a query means, as immutable values: time, windows, types, expressions, predicates, aggregates, streams."""

from windloom.model.aggregate import Aggregate, Component, Function, Needs, UserDefined
from windloom.model.emission import Emission, Emits
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.join import Join, JoinKind, Link, Side
from windloom.model.predicate import Predicate, common, covers, implies
from windloom.model.query import Grouping, Output, Query
from windloom.model.relation import EnrichedStream, Enrichment, Relation, Version
from windloom.model.rows import Reports, Rows, Selection, SetKind, SetOperation, Strand
from windloom.model.signatures import most_signatures
from windloom.model.source import WindowedStream
from windloom.model.stream import Stream
from windloom.model.time import format_duration, parse_duration
from windloom.model.types import DataType, TypeKind
from windloom.model.urgency import Urgency
from windloom.model.windows import (
    CumulateWindow,
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
    "CumulateWindow",
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
    "Needs",
    "Output",
    "Predicate",
    "Query",
    "Relation",
    "Reports",
    "Rows",
    "RowsWindow",
    "Selection",
    "SessionWindow",
    "SetKind",
    "SetOperation",
    "Side",
    "Strand",
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
    "most_signatures",
    "parse_duration",
]
