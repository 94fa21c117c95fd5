"""What `windloom init` learns from files: the columns from the first rows, and from all rows how their times come."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from windloom.errors import WindloomError
from windloom.model.formatting import count, number, share
from windloom.model.time import INTEGER_UNITS, format_duration, parse_duration

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    import pyarrow.csv as pcsv
    from numpy.typing import NDArray

#: Rows that columns are guessed from, and the most rows whose times are read.
_ROWS, _MOST = 10_000, 20_000_000
#: The share of rows that a suggested delay leaves time for.
SHARE = 0.999


@dataclass(frozen=True, slots=True)
class MeasuredTimes:
    """How the times of a stream come, in the order of its files; durations are in ticks.

    `late` rows have an earlier time than a row before them. All but a thousandth are at most `usual` late, and none is
    more than `most` late. `is_arrival` is false if rows seem to be in an order other than that in which they came.
    """

    rows: int
    untimed: int
    repeated: int
    late: int
    usual: int
    most: int
    span: int
    is_whole: bool

    @property
    def is_arrival(self) -> bool:
        return self.usual * 2 <= self.span

    @property
    def rate(self) -> float | None:
        """Tuples per second of event time; None if all have the same time."""
        timed = self.rows - self.untimed
        return timed / (self.span / 1_000_000) if self.span else None


def first_rows(path: Path) -> pa.Table:
    """Return some rows; a schema alone does not tell the unit of a whole number."""
    import pyarrow as pa

    try:
        rows = _first_rows(path)
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        raise WindloomError(f"cannot read '{path}'", first, "check that the file is what its ending says") from None
    named = [name for name in rows.column_names if name]  # pandas gives its index no name in CSV
    if not named:
        raise WindloomError(f"'{path}' has no columns", "the file is empty", "give a file with data, or a header")
    return rows.select(named)


def measured(files: Sequence[Path], name: str, unit: str | None) -> MeasuredTimes | None:
    """Return how times come in files that are read one after another; None if that cannot be measured."""
    import numpy as np
    import pyarrow as pa

    rows, found, is_whole = 0, [], True
    try:
        for column in _times(files, name):
            rows += len(column)
            found.append(_ticks(column.drop_null(), unit))
            if rows >= _MOST:
                is_whole = False
                break
    except (pa.ArrowException, OSError):  # a cell far down is no time; the run will say which
        return None
    ticks = np.concatenate(found) if found else np.empty(0, np.int64)
    if not len(ticks):
        return None
    lateness = np.maximum.accumulate(ticks) - ticks
    return MeasuredTimes(
        rows=rows,
        untimed=rows - len(ticks),
        repeated=len(ticks) - len(np.unique(ticks)),
        late=int(np.count_nonzero(lateness)),
        usual=int(np.quantile(lateness, SHARE, method="higher")),
        most=int(lateness.max()),
        span=int(ticks.max() - ticks.min()),
        is_whole=is_whole,
    )


def reads_as_time(column: pa.ChunkedArray) -> bool:
    """Return whether all values of a text are times, and there is one."""
    import pyarrow as pa

    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return column.null_count < len(column) and _instants(column) is not None


# What the catalog says of the times, in comments, and what the terminal says.


def summary(times: MeasuredTimes | None) -> list[str]:
    """Return what a person should know before the first run."""
    lines = []
    if times is not None and times.is_arrival and times.late:
        lines.append(f"delay: {delay_text(times)}, as 99.9 % of the rows come at most {told_text(times.usual)} late")
    if times is not None and times.untimed:
        lines.append(f"{count(times.untimed, 'row')} without a time: in no window, and counted by every run")
    return lines


def delay_text(times: MeasuredTimes | None) -> str:
    return format_duration(suggested_delay(times))


def untimed_text(times: MeasuredTimes | None) -> str:
    if times is None:
        return ""
    untimed = (
        f"\n--   {times.untimed:,} of {count(times.rows, 'row')} have none: they are in no window, and are counted."
    )
    repeated = (
        f"\n--   {count(times.repeated, 'row')} have the time of another row, which changes nothing in windows of time."
    )
    return (untimed if times.untimed else "") + (repeated if times.repeated else "")


def lateness_text(times: MeasuredTimes | None) -> str:
    if times is None:
        return "--   It was not measured here: the times could not be read."
    measured_rows = f"--   Measured over {'' if times.is_whole else 'the first '}{count(times.rows, 'row')}: "
    if not times.is_arrival:
        return measured_rows + "they are not in the order in which they came, so this is a guess."
    if not times.late:
        return measured_rows + "none comes after a later one, so this is a guess."
    late = f"{share(times.late / (times.rows - times.untimed))} come late, the latest by {told_text(times.most)},"
    return f"{measured_rows}{late}\n--   and 99.9 % come at most {told_text(times.usual)} late."


def suggested_delay(times: MeasuredTimes | None) -> int:
    """Return the delay to suggest: the usual lateness, rounded up to whole seconds, minutes, hours or days."""
    if times is None or not times.is_arrival or not times.late:
        return parse_duration("10 seconds")
    units = [parse_duration(text) for text in ("1 second", "1 minute", "1 hour", "1 day")]
    unit = max((unit for unit in units if times.usual > 2 * unit), default=units[0])
    return max(1, -(-times.usual // unit)) * unit


def frequency_text(times: MeasuredTimes | None) -> str:
    if times is None or times.rate is None:
        return "It was not measured."
    return f"Here: {count(times.rows - times.untimed, 'row')} in {told_text(times.span)}."


def rate_text(times: MeasuredTimes | None) -> str:
    if times is None or times.rate is None:
        return ""
    return " RATE " + f"{float(f'{times.rate:.3g}'):.9f}".rstrip("0").rstrip(".")


def told_text(ticks: int) -> str:
    """Return a measured duration as people say it: two units at most.

    >>> told_text(892_123_456), told_text(3_600_000_000), told_text(1_500), told_text(93_784_000_000)
    ('14 minutes 52 seconds', '1 hour', '0.0015 seconds', '1 day 2 hours')
    """
    if ticks < 60_000_000:
        return f"{number(ticks / 1_000_000)} seconds"
    names: list[str] = []
    left = ticks // 1_000_000
    for name, seconds in (("day", 86_400), ("hour", 3_600), ("minute", 60), ("second", 1)):
        whole, left = divmod(left, seconds)
        names += [count(whole, name)] if whole else [] if not names else [""]
    return " ".join(name for name in names[:2] if name)


# Reading.


def _instants(column: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray | None:
    """Return a text as instants, where those without a zone are in UTC; None if a value is no time."""
    import pyarrow as pa

    for kind in (pa.timestamp("us"), pa.timestamp("us", tz="UTC")):
        try:
            return column.cast(kind).cast(pa.timestamp("us", tz="UTC"))
        except pa.ArrowException:
            continue
    return None


def _ticks(column: pa.Array, unit: str | None) -> NDArray[np.int64]:
    import numpy as np
    import pyarrow as pa

    if pa.types.is_integer(column.type):
        return np.asarray(column.cast(pa.int64()), np.int64) * INTEGER_UNITS[unit or "us"]
    if pa.types.is_string(column.type) or pa.types.is_large_string(column.type):
        instants = _instants(column)
        if instants is None:
            raise pa.ArrowInvalid("a text is no time")
        column = instants
    zone = column.type.tz if pa.types.is_timestamp(column.type) else None
    return np.asarray(column.cast(pa.timestamp("us", tz=zone), safe=False).cast(pa.int64()), np.int64)


def _times(files: Sequence[Path], name: str) -> Iterator[pa.Array]:
    """Yield the column of times, in parts, without reading other columns where the format allows that."""
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    for path in files:
        suffix = path.suffix.lower()
        if suffix == ".parquet":
            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches(1 << 18, columns=[name]):
                    yield batch.column(0)
        elif suffix in (".csv", ".tsv"):
            if not path.stat().st_size:
                continue
            options = pcsv.ConvertOptions(include_columns=[name])
            with pcsv.open_csv(path, parse_options=_separated(suffix), convert_options=options) as reader:
                for batch in reader:
                    yield batch.column(0)
        else:
            yield from _read_whole(path).column(name).chunks


def _first_rows(path: Path) -> pa.Table:
    """Return rows from the beginning of a file; times in text become instants, in the zone of Spark's session."""
    import pyarrow as pa
    import pyarrow.csv as pcsv
    import pyarrow.parquet as pq

    suffix = path.suffix.lower()
    if suffix == ".parquet":
        with pq.ParquetFile(path) as file:
            batches = file.iter_batches(_ROWS)
            rows = pa.Table.from_batches([next(batches)] if file.metadata.num_rows else [], file.schema_arrow)
            # Spark's own 96 bits are instants to Spark, and local times to Arrow.
            columns = (file.schema.column(index) for index in range(len(file.schema)))
            return _as_instants(rows, [column.path for column in columns if column.physical_type == "INT96"])
    if suffix == ".orc":
        return _read_whole(path)
    if suffix in (".csv", ".tsv"):
        with pcsv.open_csv(path, parse_options=_separated(suffix)) as reader:
            rows = pa.Table.from_batches([reader.read_next_batch()])
    else:
        rows = _read_whole(path)
        for place, name in enumerate(rows.column_names):
            if reads_as_time(rows[name]):
                rows = rows.set_column(place, name, _instants(rows[name]))
    return _as_instants(rows, [field.name for field in rows.schema if pa.types.is_timestamp(field.type)])


def _read_whole(path: Path) -> pa.Table:
    import pyarrow.json as pjson
    import pyarrow.orc as orc

    return orc.read_table(path) if path.suffix.lower() == ".orc" else pjson.read_json(path)


def _separated(suffix: str) -> pcsv.ParseOptions:
    import pyarrow.csv as pcsv

    return pcsv.ParseOptions(delimiter="\t" if suffix == ".tsv" else ",")


def _as_instants(rows: pa.Table, names: Sequence[str]) -> pa.Table:
    import pyarrow as pa

    instant = pa.timestamp("us", tz="UTC")
    fields = [pa.field(field.name, instant) if field.name in names else field for field in rows.schema]
    return rows.cast(pa.schema(fields), safe=False)
