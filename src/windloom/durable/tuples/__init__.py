"""The tuple store: files of tuples under the checkpoint, written before the round that brings them is logged.

`tuples/<stream>/000000042-5f1c….parquet` holds tuples that came in round 42, all in one stretch of time, so that they
expire together: a file is deleted whole. Every attempt draws a new name, and only names in the log of a round count:
what an interrupted attempt has left is deleted. Several small files of one stretch are merged into one.

Columns are named by their place in the stream (`c0`, `c3`), which is fixed for a checkpoint. `__tick` is the event time
of a tuple, `__round` the round in which it came.
"""

from windloom.durable.tuples.columns import ROUND, TICK, column_name
from windloom.durable.tuples.files import LostTuplesError
from windloom.durable.tuples.folder import TupleFolder, named_files
from windloom.durable.tuples.writer import TupleWriter

__all__ = ["ROUND", "TICK", "LostTuplesError", "TupleFolder", "TupleWriter", "column_name", "named_files"]
