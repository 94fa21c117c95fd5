"""Spark's failures as errors that users can act on; other failures pass unchanged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import AnalysisException, PySparkException
from pyspark.logger import PySparkLogger

from windloom.errors import NANOSECONDS_READ_HINT, TIME_HINT, WindloomError
from windloom.model.query import Query

#: What to do about failures in the user's data and expressions, by class of SQLSTATE.
_HINTS = {
    "0A": "correct the query, or the columns of the stream",
    "42": "correct the query, or the columns of the stream",
    "54": "write the query in a simpler way",
    "KD": "correct the file (JSON has one object per line), or declare columns of types that fit (STRING does)",
    "21": "correct the expression or the data",
    "22": "correct the expression or the data; Spark's try_… functions give NULL instead of an error",
    "P0": "correct the data, or the condition that refuses it",
}
#: What to do about columns of files whose types Spark does not read, by words of its message.
_TYPE_HINTS = {"TIMESTAMP(NANOS": NANOSECONDS_READ_HINT, "(TIME(": TIME_HINT, "[UNSUPPORTED_TIME_TYPE]": TIME_HINT}
_STATE = re.compile(r"\s*SQLSTATE: (\w\w)\w{3}")
#: Failures of the file system under Spark itself: its log of offsets, the listing of a source.
_FILES = re.compile(r"\b(?:java\.n?io\.[\w.$]*Exception|org\.apache\.hadoop\.[\w.$]+): (.+?)(?: SQLSTATE: \w+|\n|\Z)")
_FRAGMENT = re.compile(r"^== SQL .*==\n(.*)\n( *)(\^+)", re.MULTILINE)
_OURS = re.compile(r"^windloom\.errors\.\w+: (.*?)(?:\s*SQLSTATE: |\n\s*\n|\s*\Z)", re.MULTILINE | re.DOTALL)
#: A Python worker that lacks a module, or finds one that does not fit.
_IMPORT = re.compile(r"^(?:ModuleNotFoundError|ImportError): (.+?)\s*$", re.MULTILINE)
#: Spark's message about a result that is too large for the driver.
_LIMIT = re.compile(r"Total size of serialized results of [\d,]+ tasks \((.+?)\) is bigger than \S+ \((.+?)\)")
#: The number of queries that an error names, if many ask for an expression that failed.
_NAMED = 5
#: Our own columns in expressions over aggregates.
_PLACEHOLDER = re.compile(r"\b__[ag]\d")


@contextmanager
def as_windloom_errors(what: str, queries: Iterable[Query] = ()) -> Iterator[None]:
    """Turn errors in the user's data or expressions into WindloomErrors that carry Spark's own words.

    If Spark shows the expression that failed, the error names which of the `queries` ask for it.
    """
    try:
        with quiet():
            yield
    except (PySparkException, Py4JJavaError) as error:
        messages = _messages(error)
        ours = next((match for message in messages if (match := _OURS.search(message))), None)
        if ours is not None:
            # The text of a worker's traceback: the inverse of `WindloomError.__str__`.
            body, _, hint = ours[1].partition("\nhint: ")
            message, _, detail = body.partition("\n")
            raise WindloomError(message, detail, hint) from None
        known = _of_workers(messages, what)
        if known is not None:
            raise known from error
        states = [match[1] for message in messages if (match := _STATE.search(message))]
        states += ["42"] if isinstance(error, AnalysisException) else []
        state = next((state for state in states if state in _HINTS), None)
        if state is None:
            files = next((match for message in messages if (match := _FILES.search(message))), None)
            if files is None:
                raise
            is_full = "No space left on device" in files[1]
            raise WindloomError(
                f"the disk is full: Spark cannot write files of {what}"
                if is_full
                else f"Spark cannot read or write files of {what}",
                files[1],
                "make room on it; Spark also writes to spark.local.dir" if is_full else "restore access to them",
            ) from error
        text = "\n".join(messages)
        verb = "read" if state == "KD" or "[PARQUET_TYPE_ILLEGAL]" in text else "evaluate"
        hint = next((hint for words, hint in _TYPE_HINTS.items() if words in text), _HINTS[state])
        raise WindloomError(f"Spark cannot {verb} {what}", _facts(messages, queries), hint) from error


def _of_workers(messages: list[str], what: str) -> WindloomError | None:
    """Return the error, if the failure lies between driver and executors."""
    for message in messages:
        if match := _IMPORT.search(message):
            return WindloomError(
                "Python on an executor cannot import what Windloom needs",
                match[1],
                "install windloom and its dependencies on every machine, and name that Python in spark.pyspark.python",
            )
        if match := _LIMIT.search(message):
            return WindloomError(
                f"what Spark would bring to the driver for {what} is too large",
                f"it has more than {match[1]}, and spark.driver.maxResultSize allows {match[2]}",
                "raise spark.driver.maxResultSize, or use placement='executors' and write answers to files (out=…)",
            )
    return None


@contextmanager
def quiet() -> Iterator[None]:
    """Keep Spark from logging a failed expression with the JVM's whole stack trace; the error reports it once."""
    with ExitStack() as undo:
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            logger = PySparkLogger.getLogger(name)
            logger.addFilter(_nothing)
            undo.callback(logger.removeFilter, _nothing)
        yield


def first_line(error: PySparkException) -> str:
    """Return Spark's message without the error code and the plan."""
    return _STATE.split(str(error).strip().split("\n", 1)[0])[0].rstrip()


def _nothing(record: object) -> bool:
    return False


def _messages(error: PySparkException | Py4JJavaError) -> list[str]:
    """Return Spark's messages, from the outermost failure to its cause."""
    if not isinstance(error, Py4JJavaError):
        cause = getattr(error, "_cause", None)
        return [str(error), *([] if cause is None else _messages(cause))]
    messages, java = [], error.java_exception
    while java is not None:
        messages.append(str(java.getMessage() or java.toString()))
        java = java.getCause()
    return messages


def _facts(messages: list[str], queries: Iterable[Query]) -> str:
    """Return the first line of each message, and the expression that failed if Spark shows it."""
    lines = []
    for message in messages:
        line = _STATE.split(message.strip().split("\n", 1)[0])[0].rstrip()
        if line and not line.startswith("Exception thrown in awaitResult"):
            lines.append(line)
        shown = _FRAGMENT.search(message)
        if shown is not None and not _PLACEHOLDER.search(shown[1]):
            failed = shown[1][len(shown[2]) :][: len(shown[3])]
            # The queries with an expression of which the failed one is a part; several queries may share it.
            whole = re.compile(rf"(?<!\w){re.escape(failed)}(?!\w)")
            names = [query.name for query in queries if any(whole.search(each.sql) for _, each in query.evaluated)]
            more = len(names) - _NAMED
            asked_by = ", asked by " + ", ".join(f"'{name}'" for name in names[:_NAMED]) if names else ""
            lines.append(f"in {failed}{asked_by}" + (f" and {more} more" * (more > 0)))
    return "\n".join(dict.fromkeys(lines))
