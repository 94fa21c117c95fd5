"""`windloom init`: a commented catalog from the columns of a file, to be read, changed and run."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from windloom.errors import TIME_HINT, WindloomError

if TYPE_CHECKING:
    import pyarrow as pa

    from windloom.cli.samples import MeasuredTimes

#: Names that a time column often has, the likeliest first.
_TIME_NAMES = ("ts", "timestamp", "time", "event_time", "eventtime", "datetime", "created_at", "date", "at", "when")
_SUFFIXES = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".orc")
#: Units of whole numbers that are times of this century, by their size.
_UNITS = (("s", 1e9, 1e10), ("ms", 1e12, 1e13), ("us", 1e15, 1e16))
#: Names that mean something else where a column may stand.
_KEYWORDS = re.compile(
    "all|and|any|as|between|by|case|cast|create|cross|date|distinct|else|end|false|filter|for|from|group|having|in|"
    "interval|is|join|left|like|limit|not|null|on|or|order|over|partition|query|range|right|row|rows|select|slide|some|"
    "stream|table|then|time|timestamp|top|true|union|using|when|where|window|with",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Time:
    """The column taken for event time, its unit if it is a whole number, and why it was taken."""

    column: str
    unit: str | None
    why: str


@click.command(
    epilog="Example: windloom init trades.parquet", short_help="Write a catalog from a file's columns, to start from."
)
@click.argument("file", type=click.Path())
@click.option("--out", default=None, metavar="CATALOG", help="File to write; by default named after FILE, in '.cql'.")
@click.option("--name", default=None, help="Name of the stream; by default that of FILE.")
def init(file: str, out: str | None, name: str | None) -> None:
    """Write a catalog for the data of FILE: Parquet, CSV, JSON lines or ORC, or a directory of these.

    The event time is guessed by type and name, and said. Nothing is overwritten.
    """
    from windloom.cli.samples import first_rows, measured, summary

    path = Path(file)
    files = sorted(entry for entry in path.rglob("*") if entry.name[0] not in "._") if path.is_dir() else [path]
    source = next((file for file in files if file.is_file() and file.suffix.lower() in _SUFFIXES), None)
    if source is None:
        fact = "there is no such file" if not path.exists() else "nothing there has an ending that is known"
        raise WindloomError(f"cannot read '{path}'", fact, f"give a file, or a directory, of {', '.join(_SUFFIXES)}")
    rows = first_rows(source)
    if source.suffix.lower() == ".parquet":
        _refuse_unreadable(source, rows)
    time = guess_time(rows)
    stream = name or re.sub(r"\W+", "_", Path(file).stem.partition(".")[0]).strip("_").lower() or "events"
    target = Path(out or f"{stream}.cql")
    alike = [entry for entry in files if entry.suffix.lower() == source.suffix.lower() and entry.is_file()]
    times = measured(alike, time.column, time.unit)
    text = catalog_text(stream, rows, time, times, file, target)
    try:
        with target.open("x", encoding="utf-8") as writer:
            writer.write(text)
    except FileExistsError:
        raise WindloomError(f"'{target}' is there already", "nothing is overwritten", "give another --out") from None
    except OSError as error:
        raise WindloomError(f"cannot write '{target}'", str(error), "give another --out") from None
    click.echo(f"wrote {target}: stream {stream} of {rows.num_columns} columns, event time {time.column} ({time.why})")
    for line in summary(times):
        click.echo(line)
    commands = [
        ("explain", target),
        ("run", target, "--stream", f"{stream}={file}", "--out", "answers"),
        ("show", "answers", "last_hour"),
    ]
    click.echo("next:  " + "\n       ".join(_command(*words) for words in commands))


def guess_time(rows: pa.Table) -> Time:
    """Return a timestamp, a whole number of the size of an instant, or a date; of several, by name and place."""
    import pyarrow as pa

    from windloom.cli.samples import reads_as_time

    kinds = {field.name: field.type for field in rows.schema}
    by_name = sorted(kinds, key=lambda name: _TIME_NAMES.index(name.lower()) if name.lower() in _TIME_NAMES else 99)
    for name in by_name:
        if pa.types.is_timestamp(kinds[name]):
            is_only = sum(1 for kind in kinds.values() if pa.types.is_timestamp(kind)) == 1
            return Time(name, None, "the only timestamp" if is_only else "a timestamp; there are others")
    for name in by_name:
        if pa.types.is_integer(kinds[name]) and (unit := _unit(rows[name])) is not None:
            return Time(name, unit, f"its numbers look like {unit} since 1970")
    for name in by_name:
        if pa.types.is_date(kinds[name]):
            return Time(name, None, "a date, since there is no timestamp")
    for name in by_name:
        if reads_as_time(rows[name]):
            return Time(name, None, "a text that reads as a time")
    raise WindloomError(
        "no column looks like a time",
        f"the columns are {', '.join(f'{name} {kind}' for name, kind in list(kinds.items())[:12])}",
        "write the catalog by hand: CREATE STREAM name (…) TIME column; a string that Spark can cast will do",
    )


def catalog_text(stream: str, rows: pa.Table, time: Time, times: MeasuredTimes | None, file: str, target: Path) -> str:
    """Return a stream, and two queries that any data can answer."""
    import pyarrow as pa

    from windloom.cli.samples import delay_text, frequency_text, lateness_text, rate_text, untimed_text

    columns = ",\n".join(f"  {_quoted(field.name)} {_type_name(field.type)}" for field in rows.schema)
    others = [field for field in rows.schema if field.name != time.column]
    key = next(
        (other.name for other in others if pa.types.is_string(other.type) or pa.types.is_dictionary(other.type)), None
    )
    are_numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
    number = next((other.name for other in others if any(is_one(other.type) for is_one in are_numbers)), None)
    source = _quoted(stream)
    figures = "count(*) AS n"
    if number is not None:
        figures = f"avg({_quoted(number)}) AS average, max({_quoted(number)}) AS highest"
    head, tail = ("", "") if key is None else (f"{_quoted(key)}, ", f" GROUP BY {_quoted(key)}")
    unit = "" if time.unit is None else f" UNIT {time.unit}"
    return f"""-- Made by `{_command("init", file)}`: read it, change it, run it.
--   {_command("explain", target)}    shows the plan, without data
--   {_command("run", target, "--stream", f"{stream}={file}", "--out", "answers")}    answers the queries
--   {_command("show", "answers", "last_hour")}    shows the latest answers

-- TIME is the event time: {time.column}, {time.why}.{untimed_text(times)}
-- DELAY says how late a tuple may come and still count; it matters for streams only.
{lateness_text(times)}
-- RATE is tuples per second, from which costs are predicted. {frequency_text(times)}
CREATE STREAM {source} (
{columns}
) TIME {_quoted(time.column)}{unit} DELAY {delay_text(times)}{rate_text(times)};

-- A window of one minute that moves on by six seconds: every six seconds the last minute is counted.
CREATE QUERY per_minute AS
  SELECT count(*) AS n FROM {source} [RANGE 1 minute SLIDE 6 seconds];

-- Many more windows cost little: queries of one grouping share what is aggregated.
CREATE QUERY last_hour AS
  SELECT {head}{figures}
  FROM {source} [RANGE 1 hour SLIDE 5 minutes]{tail};
"""


def _command(*words: object) -> str:
    """Return a command as a shell takes it."""
    return shlex.join(["windloom", *map(str, words)])


def _refuse_unreadable(path: Path, rows: pa.Table) -> None:
    """Raise for columns of Parquet that Spark does not read: no catalog could be run on the file."""
    import pyarrow as pa

    for field in rows.schema:
        if pa.types.is_time(field.type):
            raise WindloomError(
                f"'{path}': Spark cannot read column '{field.name}'", f"it is of type {field.type}", TIME_HINT
            )


def _unit(column: pa.ChunkedArray) -> str | None:
    import pyarrow.compute as pc

    largest = pc.max(column).as_py()
    return next((unit for unit, least, most in _UNITS if largest is not None and least <= largest < most), None)


def _quoted(name: str) -> str:
    """Return a name as CQL takes it whatever it is made of."""
    is_plain = re.fullmatch(r"[a-z][a-z0-9_]*", name, re.IGNORECASE) and not _KEYWORDS.fullmatch(name)
    return name if is_plain else f"`{name.replace('`', '``')}`"


def _type_name(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_timestamp(kind):
        return "TIMESTAMP" if kind.tz else "TIMESTAMP_NTZ"
    if pa.types.is_decimal(kind):
        return f"DECIMAL({kind.precision}, {kind.scale})"
    if pa.types.is_dictionary(kind):
        return _type_name(kind.value_type)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return f"ARRAY<{_type_name(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"STRUCT<{', '.join(f'{_quoted(field.name)}: {_type_name(field.type)}' for field in kind)}>"
    if pa.types.is_map(kind):
        return f"MAP<{_type_name(kind.key_type)}, {_type_name(kind.item_type)}>"
    if pa.types.is_duration(kind):
        return "BIGINT"
    if pa.types.is_fixed_size_binary(kind):
        return "BINARY"
    names = {
        "bool": "BOOLEAN", "int8": "TINYINT", "int16": "SMALLINT", "int32": "INT", "int64": "BIGINT",
        "uint8": "SMALLINT", "uint16": "INT", "uint32": "BIGINT", "uint64": "DECIMAL(20, 0)", "halffloat": "FLOAT",
        "float": "FLOAT", "double": "DOUBLE", "date32[day]": "DATE", "date64[ms]": "DATE", "binary": "BINARY",
        "large_binary": "BINARY",
    }  # fmt: skip
    return names.get(str(kind), "STRING")
