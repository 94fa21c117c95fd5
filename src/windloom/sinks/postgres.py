"""PostgreSQL: the rows of a round and its number are committed in one transaction, so that each row is there once.

Rows are copied into a staging table and upserted from there. `windloom_rounds` holds the number of the last round that
was written: a round that comes again is left out. A schema belongs to one checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import ClassVar, Self

import psycopg
from psycopg import Connection, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from windloom.checkpoint.storage import fault
from windloom.errors import SinkDownError, WindloomError
from windloom.model.clauses import Emits
from windloom.sinks.postgres_tables import PostgresTable, csv_of, split_rows, view_name
from windloom.sinks.sink import RoundAnswers, Sink, SinkPlace, TableInfo

ROUNDS = "windloom_rounds"
#: The first version whose unique keys can treat NULL as equal to NULL, as groups do.
_OLDEST = 150_000
#: Classes of SQLSTATE, and single codes, after which another attempt may succeed: no connection, no space, a shutdown,
#: a deadlock, a time limit, a server that is read-only during a fail-over.
_PASSING = ("08", "40", "53", "57", "58", "25006", "55P03")
#: Settings by which the connection notices that the server is gone, in seconds and milliseconds.
_WATCHFUL: Mapping[str, str | int] = {
    "connect_timeout": 10,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "windloom",
}


class PostgresSink(Sink):
    target: ClassVar[str | None] = "url"

    def __init__(self, url: str, schema: str, checkpoint: str) -> None:
        self._url, self._schema, self._checkpoint = url, schema, checkpoint
        # The address without the password, for messages.
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error as error:
            raise WindloomError(
                "the address of PostgreSQL cannot be read",
                str(error).partition(': "')[0].strip(),  # without the address, which may hold a password
                "write it as postgresql://user@host:5432/database, and keep the password in ~/.pgpass",
            ) from None
        host, database = parts.get("host") or "the default host", parts.get("dbname") or "the default database"
        port = f":{parts['port']}" if parts.get("port") else ""
        self._place = f"'{host}{port}', '{database}'"
        self._connection: Connection | None = None
        self._known: dict[str, Mapping[str, PostgresTable]] = {}  # tables and views that exist, by table of answers
        self._is_prepared = False

    @classmethod
    def open(cls, place: SinkPlace, *, url: str, schema: str = "windloom") -> Self:
        """`url` is a connection string; missing parts come from libpq's environment variables and password file."""
        sink = cls(url, schema, place.checkpoint_id)
        try:
            with sink._transaction() as connection:
                sink._prepare(connection)
                raise psycopg.Rollback  # this start may still be refused; the first round makes what is missing
        except SinkDownError as error:  # at the start, a wrong address is likelier than a server that is down
            sink.close()
            raise WindloomError(error.message, error.detail, error.hint) from error
        except BaseException:
            sink.close()
            raise
        return sink

    def write(self, round: int, answers: RoundAnswers) -> None:
        try:
            with self._transaction() as connection:
                if not self._is_prepared:
                    self._prepare(connection)
                if self._holds(connection, round):
                    return
                self._describe(connection, answers.tables)
                filled: dict[PostgresTable, None] = {}
                for name, rows in answers.rows():
                    for table, table_rows in split_rows(rows, self._known[name]):
                        if table not in filled:
                            self._execute(connection, table.staging_creation())
                            filled[table] = None
                        fault("before sink")
                        with connection.cursor().copy(table.copy()) as copy:
                            for portion in csv_of(table_rows, table.columns):
                                copy.write(portion)
                        fault("after sink")
                for table in filled:
                    for statement in table.upsert():
                        self._execute(connection, statement)
                rounds = sql.Identifier(self._schema, ROUNDS)
                done = sql.SQL("UPDATE {} SET round = {}, committed = now()").format(rounds, sql.Literal(round))
                self._execute(connection, done)
                fault("before sink")
            self._is_prepared = True
            fault("after sink")
        except BaseException:
            self._known = {}  # the transaction may have undone the creation of tables
            raise

    def close(self) -> None:
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.close()
            self._connection = None

    def _prepare(self, connection: Connection) -> None:
        """Create the schema and the table of rounds, or check that they belong to this checkpoint."""
        version = connection.info.server_version
        if version < _OLDEST:
            raise WindloomError(
                f"PostgreSQL {version // 10_000} at {self._place} is too old",
                "its unique keys do not take NULL for a group",
                "use PostgreSQL 15 or newer",
            )
        schema, rounds = sql.Identifier(self._schema), sql.Identifier(self._schema, ROUNDS)
        question = "SELECT nspname, to_regclass(%s) FROM pg_namespace WHERE nspname = %s"
        existing = connection.execute(question, [rounds.as_string(connection), self._schema]).fetchone()
        if existing is None:  # a user who may not create schemas can still use an existing one
            self._execute(connection, sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(schema))
        if existing is None or existing[1] is None:
            columns = "(checkpoint text PRIMARY KEY, round bigint NOT NULL, committed timestamptz NOT NULL)"
            self._execute(connection, sql.SQL("CREATE TABLE IF NOT EXISTS {} " + columns).format(rounds))
        owner = connection.execute(sql.SQL("SELECT checkpoint FROM {}").format(rounds)).fetchone()
        if owner is None:
            connection.execute(sql.SQL("INSERT INTO {} VALUES (%s, -1, now())").format(rounds), [self._checkpoint])
        elif owner[0] != self._checkpoint:
            raise WindloomError(
                f"the schema '{self._schema}' at {self._place} holds the answers of another stream",
                "its rounds belong to another checkpoint",
                "give another schema, or the checkpoint these answers were made with",
            )

    def _holds(self, connection: Connection, round: int) -> bool:
        """Return whether the round is there; wait while an earlier process may still be committing it."""
        rounds = sql.Identifier(self._schema, ROUNDS)
        row = connection.execute(sql.SQL("SELECT round FROM {} FOR UPDATE").format(rounds)).fetchone()
        last_round = -1 if row is None else int(row[0])
        if last_round > round:
            raise WindloomError(
                f"the schema '{self._schema}' at {self._place} has come further than the checkpoint",
                f"it holds round {last_round}, and the checkpoint goes on with round {round}: it may be an older copy",
                f"use the newest checkpoint; to write these rounds once more, set `round` of {ROUNDS} to {round - 1}",
            )
        return last_round == round

    def _describe(self, connection: Connection, infos: Mapping[str, TableInfo]) -> None:
        """Create the tables and views that do not exist yet."""
        for name, info in infos.items():
            # Tables may differ, as a column may be a group of one query and an aggregate of another.
            columns, early = tuple(info.columns.items()), info.emitting(Emits.EARLY)
            wanted = {
                query: PostgresTable(
                    self._schema,
                    columns,
                    groups=None if query in info.rows else groups,
                    has_windows=query not in info.pairs,
                    withdraws=query in early,
                )
                for query, groups in info.queries.items()
            }
            known = self._known.get(name, {})
            if wanted == known:
                continue
            for table in dict.fromkeys(wanted.values()):
                if table not in known.values():
                    for statement in table.creation():
                        self._execute(connection, statement)
            # The views with their comments, and the names of all other relations, which no view can have.
            question = (
                "SELECT relname, relkind = 'v', obj_description(pg_class.oid, 'pg_class')"
                " FROM pg_class JOIN pg_namespace ON pg_namespace.oid = relnamespace WHERE nspname = %s"
            )
            relations = connection.execute(question, [self._schema]).fetchall()
            views = {name: about for name, is_view, about in relations if is_view}
            others = {name for name, is_view, _ in relations if not is_view}
            for query, table in wanted.items():
                view = view_name(query, others)
                if views.get(view) != table.about(query):
                    for statement in table.view(query, view, replaces=view in views):
                        self._execute(connection, statement)
            self._known[name] = wanted

    def _execute(self, connection: Connection, statement: sql.Composed) -> None:
        fault("before sink")
        connection.execute(statement)
        fault("after sink")

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        """Give a transaction that is committed at the end of the `with`; an error closes the connection."""
        try:
            if self._connection is not None:
                try:  # a firewall may have dropped it between two rounds
                    self._connection.execute("SELECT 1")
                except psycopg.Error:
                    self.close()
            if self._connection is None:
                settings = {**_WATCHFUL, **conninfo_to_dict(self._url)}
                self._connection = psycopg.connect(make_conninfo("", **settings), autocommit=True)
            connection = self._connection
            with connection.transaction():
                yield connection
        except psycopg.Error as error:
            self.close()
            raise self._failed(error) from error
        except BaseException:
            self.close()
            raise

    def _failed(self, error: psycopg.Error) -> WindloomError:
        state, facts = error.sqlstate, " ".join(str(error).split())
        if state is None and not isinstance(error, psycopg.OperationalError):
            state = "XX000"  # the error comes from psycopg itself
        if state is None or state.startswith(_PASSING):
            full = "make room there" if state == "53100" else "start it, or correct its address"
            return SinkDownError(f"PostgreSQL at {self._place} does not take the round", facts, full)
        hints = {
            "42501": f"grant the rights to create and use tables in schema '{self._schema}'",
            "2BP01": "drop what depends on the view of a query that was replaced, or give the query another name",
            "54000": "group by shorter texts: PostgreSQL keeps at most 2,700 bytes of them in a key",
        }
        return WindloomError(
            f"PostgreSQL at {self._place} refuses the round", facts, hints.get(state, "correct what it names")
        )
