"""The registry of a loom: streams with their data, queries, and the types of their expressions.

The module is long because what is registered depends on each other: whatever replaces or drops one of them looks here.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import reduce
from pathlib import Path
from typing import Any

from windloom.aggregates.registry import FUNCTIONS
from windloom.checkpoint.records import differences, identity_of
from windloom.engine.bring import LeafStreams
from windloom.engine.declare import Given, RelationSource, make_relation, make_stream, refuse_taken_name
from windloom.engine.type_checks import check_condition, check_join, check_rows
from windloom.errors import WindloomError, near_names
from windloom.language.catalog import parse_catalog
from windloom.language.select import parse_query
from windloom.language.sql.join_names import expression_type, joined_type
from windloom.language.sql.syntax import why_refused
from windloom.model.aggregate import UserDefined
from windloom.model.expression import Expression, ExpressionKey
from windloom.model.query import Query
from windloom.model.stream import EnrichedStream, Relation, Stream
from windloom.model.types import BIGINT, DataType
from windloom.plan.plan import Plan
from windloom.spark.api import DataFrame, SparkSession, StructType
from windloom.spark.frames import (
    CONDITIONS,
    OutputsOfTypes,
    can_evaluate,
    check_outputs,
    empty_frame,
    expression_types,
    has_usual_types,
)
from windloom.spark.sources.files import LocalFiles


class Registry:
    """Everything that has been registered; a method that raises leaves it unchanged."""

    def __init__(self, session: Callable[[], SparkSession]) -> None:
        self._session = session  # called only if a type or an answer needs Spark
        self.streams: dict[str, Stream] = {}
        self.relations: dict[str, Relation] = {}
        self.queries: dict[str, Query] = {}
        self.aggregates: dict[str, UserDefined] = {}
        self._frames: dict[str, DataFrame] = {}
        self._versions: dict[str, RelationSource] = {}
        self._declared: dict[str, Stream] = {}  # streams and relations as catalogs declare them
        self._files: dict[str, LocalFiles | None] = {}  # the files of streams that were looked at
        self.known_types: dict[ExpressionKey, DataType] = {}  # of all expressions of queries bound or checked
        # Aliases and sources of joins, by the name of the joined relation on which expressions are evaluated.
        self._joined: dict[str, tuple[tuple[str, str], ...]] = {}
        self._enriched: dict[str, EnrichedStream] = {}  # the enriched streams that some query reads
        self._leaves = LeafStreams()
        self._asked: dict[str, tuple[str, DataFrame]] = {}  # queries that were given as DataFrames, with their texts
        self._checked: set[Query] = set()
        self._checked_outputs: set[tuple[object, ...]] = set()  # many queries differ only in their windows

    def add_stream(
        self,
        name: str,
        frame: DataFrame,
        time: str | None,
        delay: str | timedelta | None,
        unit: str | None,
        rate: float | None,
        *,
        replace: bool = False,
    ) -> Stream:
        refuse_taken_name(name, "stream", self.sources)
        stream, frame = make_stream(name, frame, self._declared.get(name), time, delay, unit, rate)
        self._take_over(stream, name in self._frames, replace=replace)
        self._frames[name] = frame
        self._files.pop(name, None)
        return stream

    def add_relation(self, name: str, given: Given, retroactive: bool | None, *, replace: bool = False) -> Relation:
        refuse_taken_name(name, "relation", self.sources)
        declared = self._declared.get(name)
        source = make_relation(name, given, declared if isinstance(declared, Relation) else None, retroactive)
        self._take_over(source.relation, name in self._versions, replace=replace)
        self._versions[name] = source
        return source.relation

    def _take_over(self, made: Stream, is_registered: bool, *, replace: bool) -> None:
        """Register a source; one that is registered stays as it is, unless it is replaced, and may get other data."""
        before = self.sources.get(made.name)
        if is_registered and made == before:
            return
        if is_registered and not replace and before is not None:
            facts = list(differences(_identity(before), _identity(made), "where it was registered first"))
            raise _registered_otherwise(
                made.title, "; ".join(each.fact for each in facts) or "its rate was another one"
            )
        self._replace_source(made)

    def order_columns(self, columns: Mapping[str, Sequence[str]]) -> None:
        """Put the columns of streams into the order that a checkpoint has: its files call a column by its place."""
        for name, ordered in columns.items():
            stream = self.streams.get(name)
            if stream is not None and list(stream.columns) != list(ordered):
                kinds = {column: stream.columns[column] for column in ordered}
                self.streams[name] = dataclasses.replace(stream, columns=kinds)

    @property
    def sources(self) -> dict[str, Stream]:
        """Everything that a query can read, by name."""
        return {**self.streams, **self.relations}

    def current_versions(self) -> dict[str, Callable[[], DataFrame]]:
        """Return, for every relation that has data, the function that returns its current version."""
        return {name: source.current for name, source in self._versions.items()}

    def _replace_source(self, made: Stream) -> None:
        """Take over the real columns of a stream or relation, which may have been declared before."""
        name = made.name
        queries = {
            # The declaration may spell columns differently or have fewer of them: bind again to the real columns.
            key: parse_query(key, query.text, {**self.sources, name: made}, self.aggregates)
            if name in (*query.streams, *query.relations)
            else query
            for key, query in self.queries.items()
        }
        self.queries = queries
        if isinstance(made, Relation):
            self.relations[name] = made
        else:
            self.streams[name] = made
        self._forget(name)

    def _forget_data(self, name: str) -> None:
        self._frames.pop(name, None)
        self._versions.pop(name, None)
        self._files.pop(name, None)
        self._leaves.forget(name)

    def _forget(self, name: str) -> None:
        """Forget what was derived from a declaration, which may not hold for the data."""
        self._checked = {query for query in self._checked if name not in (*query.streams, *query.relations)}
        stale = {
            name,
            *(
                key
                for key, enriched_stream in self._enriched.items()
                if name in (enriched_stream.base, *enriched_stream.relations)
            ),
        }
        stale |= {key for key, sources in self._joined.items() if any(source in stale for _, source in sources)}
        self.known_types = {key: kind for key, kind in self.known_types.items() if key.relation not in stale}

    def add_aggregate(self, aggregate: UserDefined, *, replace: bool = False) -> None:
        """Register an aggregate under its name, which must not be the name of a function."""
        name, taken = aggregate.name, None
        before = self.aggregates.get(name)
        if before is not None and before != aggregate and not replace:
            raise _registered_otherwise(f"aggregate '{name}'", "its functions were others")
        if name in FUNCTIONS:
            taken = f"{name}() is an aggregate of windloom"
        elif why_refused(name, 1) is not None or self._session().catalog.functionExists(name):
            taken = f"{name}() is a function of Spark SQL"
        if taken is not None:
            raise WindloomError(f"aggregate '{name}' cannot be defined", taken, "give it another name")
        own = {**self.aggregates, name: aggregate}
        if before is not None and before != aggregate:
            self.queries = {key: parse_query(key, each.text, self.sources, own) for key, each in self.queries.items()}
        self.aggregates = own

    def add_query(self, name: str, text: str, *, replace: bool = False) -> Query:
        query, before = self._named(name, text), self.queries.get(name)
        if before is not None and _means_the_same(query, before):
            return before
        if before is not None and not replace:
            raise _registered_otherwise(f"query '{name}'", " ".join(before.text.split()))
        if self._has_data(query):
            self._check(query)
        self.queries[name] = query
        return query

    def add_frame(self, name: str, frame: DataFrame, urgent: Callable[[str], str], *, replace: bool = False) -> Query:
        """Register the query that a DataFrame stands for, and a stream for its leaf; `urgent` adds urgency to a text.

        What is below the window becomes a part of the query where the language has it. Otherwise Spark computes it
        before tuples are read, and then the DataFrames that read the same do not share that reading.
        """
        try:
            return self._add_written(name, frame, urgent, deep=True, replace=replace)
        except WindloomError as error:
            try:
                return self._add_written(name, frame, urgent, deep=False, replace=replace)
            except WindloomError:
                raise error from None

    def _add_written(
        self, name: str, frame: DataFrame, urgent: Callable[[str], str], *, deep: bool, replace: bool
    ) -> Query:
        from windloom.spark.plans.read import read_frame

        written = read_frame(name, frame, self._session(), self._frames.values(), deep=deep)
        brought = self._leaves.stream_of(written, self.streams, self._frames, list(self.sources))
        if brought.frame is not None:
            self.add_stream(brought.name, brought.frame, brought.time, brought.delay, None, None)
        try:
            query = self.add_query(name, urgent(written.text(brought.name, brought.time)), replace=replace)
        except WindloomError:
            if brought.frame is not None:
                del self.streams[brought.name], self._frames[brought.name]
                self.known_types = {key: kind for key, kind in self.known_types.items() if key.relation != brought.name}
            raise
        if brought.frame is not None:
            self._leaves.remember(brought, written)
        self._asked[name] = query.text, frame
        return query

    @property
    def asked(self) -> dict[str, DataFrame]:
        """The DataFrames that queries were given as, unless they have been replaced since."""
        return {
            name: frame
            for name, (text, frame) in self._asked.items()
            if name in self.queries and self.queries[name].text == text
        }

    @property
    def schemas(self) -> dict[str, StructType]:
        """The schemas of the queries that were given as DataFrames."""
        return {name: frame.schema for name, frame in self.asked.items()}

    def drop(self, name: str) -> None:
        """Remove the query, stream, relation or aggregate of this name; of a query, only the query, if it has both."""
        if name in self.queries:
            del self.queries[name]
            self._asked.pop(name, None)
            return
        if name in self.sources:
            readers = [query.name for query in self.queries.values() if name in (*query.streams, *query.relations)]
            if readers:
                raise _still_read(self.sources[name].title, readers)
            self.streams.pop(name, None)
            self.relations.pop(name, None)
            self._declared.pop(name, None)
            self._forget_data(name)
            self._forget(name)
            return
        if name in self.aggregates:
            own = (query for query in self.queries.values() if any(each.own for each in query.aggregates))
            readers = [query.name for query in own if name in [each.own.name for each in query.aggregates if each.own]]
            if readers:
                raise _still_read(f"aggregate '{name}'", readers)
            del self.aggregates[name]
            return
        raise WindloomError(
            f"there is no '{name}' to drop",
            "queries, streams, relations and aggregates are dropped by their names",
            near_names(name, [*self.queries, *self.sources, *self.aggregates]),
        )

    def bind(self, name: str, text: str) -> Query:
        """Return the query of a text on the registered streams, checked; it is not registered."""
        query = self._named(name, text)
        self._check(query)
        self._checked.discard(query)  # queries of a running stream come and go, and must not pile up here
        return query

    def _named(self, name: str, text: str) -> Query:
        if not name or not isinstance(name, str):
            raise WindloomError("a query needs a name", f"it was given {name!r}", "loom.query('avg_1h', 'SELECT …')")
        return parse_query(name, text, self.sources, self.aggregates)

    def load(self, path: str | Path, *, with_queries: bool = True, replace: bool = False) -> None:
        file = Path(path)
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise WindloomError(
                f"cannot read the catalog '{file}'", str(error), "give the path of a .cql file in UTF-8"
            ) from None
        catalog = parse_catalog(text, source=file.name)
        streams, relations, queries = dict(self.streams), dict(self.relations), dict(self.queries)
        declarations: dict[str, Stream] = {}
        for declared in (*catalog.streams, *catalog.relations):
            source = declared.stream
            known = {**streams, **relations}
            # FROM compares names without case.
            before = next((each for name, each in known.items() if name.lower() == source.name.lower()), None)
            if self._declared.get(source.name) == source:
                continue  # loaded before; its data may be registered by now
            is_other = before is None or (before.name, before.is_relation) != (source.name, source.is_relation)
            if before is not None and (is_other or not replace):
                again = "it again" if before.name == source.name else f"'{source.name}', which is the same name"
                again = "it otherwise" if source.name in self._declared else again
                raise WindloomError(
                    f"{before.title} is already registered",
                    f"'{file.name}' creates {again}, at line {declared.line}",
                    "load the catalog before its data is registered; replace=True replaces what it creates",
                )
            declarations[source.name] = source
            if isinstance(source, Relation):
                relations[source.name] = source
            else:
                streams[source.name] = source
        for entry in catalog.queries if with_queries else ():
            query, known_query = entry.parse({**streams, **relations}, self.aggregates), queries.get(entry.name)
            if known_query is not None and _means_the_same(query, known_query):
                continue
            if known_query is not None and not replace:
                raise _registered_otherwise(f"query '{entry.name}'", " ".join(known_query.text.split()))
            queries[entry.name] = query
        for name in declarations.keys() & self.sources.keys():
            known = {**streams, **relations}
            readers = (key for key, each in queries.items() if name in (*each.streams, *each.relations))
            queries |= {key: parse_query(key, queries[key].text, known, self.aggregates) for key in readers}
        self.streams, self.relations, self.queries = streams, relations, queries
        for name in declarations:
            self._forget_data(name)
            self._forget(name)
        self._declared |= declarations

    def frames(self, plan: Plan) -> dict[str, DataFrame]:
        """Return the data of every stream the plan reads; raise for streams without data and streams that never end."""
        frames = self.data_of(plan)
        for stream in plan.streams:
            if frames[stream.name].isStreaming:
                raise WindloomError(
                    f"stream '{stream.name}' is a streaming DataFrame",
                    "run() answers all windows of bounded data",
                    "start() it, or read it as a batch (spark.read instead of spark.readStream)",
                )
        self.check_versions(planned_relation.name for planned_relation in plan.relations)
        return frames

    def data_of(self, plan: Plan) -> dict[str, DataFrame]:
        """Return the data of every stream the plan reads, batch or streaming; raise for streams without data."""
        for stream in plan.streams:
            if stream.name not in self._frames:
                raise _no_data(stream.name)
        return {stream.name: self._frames[stream.name] for stream in plan.streams}

    def bounded(self, name: str) -> DataFrame | None:
        """Return the data of a stream; None if it has none, or never ends."""
        frame = self._frames.get(name)
        return None if frame is None or frame.isStreaming else frame

    def files(self) -> dict[str, LocalFiles]:
        """Return the files of streams that the driver can read itself, by name of the stream."""
        for name, frame in self._frames.items():
            if name not in self._files:
                self._files[name] = None if frame.isStreaming else LocalFiles.of(frame)
        return {name: local_files for name, local_files in self._files.items() if local_files is not None}

    def check_versions(self, relations: Iterable[str]) -> None:
        """Raise for relations without data."""
        for name in relations:
            if name not in self._versions:
                raise WindloomError(
                    f"relation '{name}' has no data",
                    "only its columns are declared",
                    f"give it some: loom.relation('{name}', df), or --relation {name}=PATH",
                )

    def streaming_frames(self) -> dict[str, DataFrame]:
        """Return the data of all streams; raise for batch data, and for sources without data that a query reads."""
        self.check_versions(name for query in self.queries.values() for name in query.relations)
        asked = {stream for query in self.queries.values() for stream in query.streams}
        for name in self.streams:
            frame = self._frames.get(name)
            if frame is None and name in asked:
                raise _no_data(name)
            if frame is not None and not frame.isStreaming:
                raise WindloomError(
                    f"stream '{name}' is a batch DataFrame",
                    "start() answers windows of unbounded streams as they close",
                    "read it with spark.readStream, answer it with run(), or give it as history=…",
                )
        return dict(self._frames)

    def types(self) -> dict[ExpressionKey, DataType]:
        """Return the types of all expressions, from the data if there is any, otherwise from the declaration."""
        with suppress(WindloomError):  # checked again below, query by query, to name the query that is wrong
            self._learn_types(self.queries.values())
            # Asks Spark once for all queries; if it rejects one, `_check` finds out which.
            unchecked = (query for query in self.queries.values() if query not in self._checked)
            found = map(self._outputs_of, unchecked)
            asked = {outputs.key: outputs for outputs in found if self._must_ask(outputs)}
            if asked and can_evaluate(self._session(), asked.values()):
                self._checked_outputs.update(asked)
        for query in self.queries.values():
            self._check(query)
        return self.known_types

    def _check(self, query: Query) -> None:
        """Raise if the types of the data do not fit the query; check expressions over aggregates only with data."""
        if query in self._checked:
            return
        try:
            self._check_enriched(query)
            self._learn_types([query])
            outputs = self._outputs_of(query)
            if self._must_ask(outputs):
                check_outputs(self._session(), outputs)
                self._checked_outputs.add(outputs.key)
        except WindloomError as error:
            raise WindloomError(f"query '{query.name}': {error.message}", error.detail, error.hint) from None
        self._checked.add(query)

    def _outputs_of(self, query: Query) -> OutputsOfTypes:
        """Return the outputs of a query, after a check of the types that they are made from."""
        groups, aggregates = _check_query_types(query, self.known_types)
        time = BIGINT if query.window.is_of_positions else self.sources[query.streams[0]].window_type
        return OutputsOfTypes(query, groups, aggregates, time)

    def _check_enriched(self, query: Query) -> None:
        """Raise if Spark cannot use a condition to join tuples with a relation."""
        for stream in query.enriched:
            columns = dict(self.sources[stream.base].columns)
            for enrichment in stream.enrichments:
                relation = self.sources[enrichment.relation]
                columns |= {enrichment.column(name): kind for name, kind in relation.columns.items()}
                kind = expression_type(enrichment.on, columns) if self._has_usual_types(stream.base) else None
                if kind is None:
                    frame = empty_frame(self._session(), Stream(stream.name, columns))
                    kind = expression_types(frame, [enrichment.on])[enrichment.on.sql]
                check_condition(f"condition '{enrichment.on}' on relation '{enrichment.relation}'", kind)

    def _must_ask(self, outputs: OutputsOfTypes) -> bool:
        """Return whether to ask Spark if it can evaluate outputs: there is data, and our own rules do not decide it."""
        query = outputs.query
        if not self._has_data(query) or query.is_plain or outputs.key in self._checked_outputs:
            return False
        if not all(map(self._has_usual_types, (*query.streams, *query.relations))):
            return True
        kinds = [expression_type(expression, outputs.columns) for expression in outputs.expressions]
        having = query.having is not None and kinds[-1] is not None and kinds[-1].kind not in CONDITIONS
        return having or None in kinds

    def _learn_types(self, queries: Iterable[Query]) -> None:
        """Find the types of all expressions of the queries that are not known yet."""
        missing: dict[str, dict[Expression, None]] = {}
        for query in queries:
            self._joined |= _joined(query)
            self._enriched |= {enriched_stream.name: enriched_stream for enriched_stream in query.enriched}
            for relation, expression in query.evaluated:
                if ExpressionKey(relation, expression.sql) not in self.known_types:
                    missing.setdefault(relation, {})[expression] = None
        for relation, expressions in missing.items():
            self._learn_types_of(relation, list(expressions))

    def _learn_types_of(self, relation: str, expressions: list[Expression]) -> None:
        """Find types from the columns and our own rules, and the others from Spark, in one analysis."""
        # One stream, or a join of several under their aliases.
        sources, known = self._joined.get(relation, ((relation, relation),)), {**self.sources, **self._enriched}
        aliases, streams = [alias for alias, _ in sources], [known[source] for _, source in sources]
        by_rule = all(self._has_usual_types(stream.name) for stream in streams)
        unknown = []
        for expression in expressions:
            kind = None
            if relation not in self._joined:
                kind = streams[0].columns[expression.column] if expression.column is not None else None
                kind = expression_type(expression, streams[0].columns) if kind is None and by_rule else kind
            elif by_rule or expression.column is not None:
                kind = joined_type(expression, aliases, streams)
            if kind is None:
                unknown.append(expression)
            else:
                self.known_types[ExpressionKey(relation, expression.sql)] = kind
        if unknown:
            frames = [
                self._frames[stream.name] if stream.name in self._frames else empty_frame(self._session(), stream)
                for stream in streams
            ]
            if relation in self._joined:
                frames = [frame.alias(alias) for alias, frame in zip(aliases, frames, strict=True)]
            frame = reduce(DataFrame.crossJoin, frames)
            for sql, kind in expression_types(frame, unknown).items():
                self.known_types[ExpressionKey(relation, sql)] = kind

    def _has_data(self, query: Query) -> bool:
        has_rows = all(relation in self._versions for relation in query.relations)
        return has_rows and all(stream in self._frames for stream in query.streams)

    def _has_usual_types(self, stream: str) -> bool:
        """Return whether our own rules for types hold in the session of the data; without data, assume that they do."""
        read = self._enriched[stream].base if stream in self._enriched else stream
        return (read not in self._frames and read not in self._versions) or has_usual_types(self._session())


def _joined(query: Query) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return the joins on which expressions of a query are evaluated, with the aliases and sources of each."""
    if query.join is not None:
        sides = tuple((side.alias, side.source.stream) for side in query.join.sides)
        return {query.join.relation: sides}
    selections = () if query.rows is None else query.rows.selections
    return {
        selection.relation: tuple((strand.alias, strand.stream) for strand in selection.strands)
        for selection in selections
        if len(selection.strands) > 1
    }


def _no_data(stream: str) -> WindloomError:
    return WindloomError(
        f"stream '{stream}' has no data",
        "only its columns are declared",
        f"give it some: loom.stream('{stream}', df), or --stream {stream}=PATH",
    )


def _means_the_same(query: Query, other: Query) -> bool:
    """Return whether two queries differ only in how they are written."""
    return dataclasses.replace(query, text=other.text) == other


def _identity(source: Stream) -> dict[str, Any]:
    return (
        identity_of({}, {source.name: source})
        if isinstance(source, Relation)
        else identity_of({source.name: source}, {})
    )


def _registered_otherwise(title: str, before: str) -> WindloomError:
    return WindloomError(
        f"{title} is already registered",
        f"it is another one: {before}",
        "replace=True replaces it; or give this one another name",
    )


def _still_read(title: str, queries: Sequence[str]) -> WindloomError:
    shown = ", ".join(f"'{name}'" for name in queries[:5])
    shown += f" and {len(queries) - 5} more" if len(queries) > 5 else ""
    return WindloomError(f"{title} cannot be dropped", f"queries read it: {shown}", "drop these first: loom.drop(name)")


def _check_query_types(query: Query, types: dict[ExpressionKey, DataType]) -> tuple[list[DataType], list[DataType]]:
    """Check the types of the groupings and of the aggregates."""
    groups = [types[query.key_of(grouping.expression)] for grouping in query.group_by]
    for grouping, kind in zip(query.group_by, groups, strict=True):
        if not kind.is_groupable:
            raise WindloomError(
                f"cannot group by '{grouping.expression}'",
                f"it is of type {kind}",
                "group by plain values: its fields or elements, or lower(…) instead of a collation",
            )
    if query.where is not None:
        check_condition(f"WHERE condition '{query.where}'", types[query.key_of(query.where)])
    if query.join is not None:
        check_join(query.join, query, types)
    if query.rows is not None:
        check_rows(query.rows, types)
    for aggregate in query.aggregates:
        if aggregate.by is not None:
            aggregate.check_by(types[query.key_of(aggregate.by)])
        if aggregate.where is not None:
            aggregate.check_where(types[query.key_of(aggregate.where)])
    aggregates = [
        aggregate.result_type(None if aggregate.argument is None else types[query.key_of(aggregate.argument)])
        for aggregate in query.aggregates
    ]
    return groups, aggregates
