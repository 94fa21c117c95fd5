"""A kit for testing streaming queries without Spark: an oracle that answers by definition, and slowly."""

from windloom.testing.joins import answer_join
from windloom.testing.oracle import answer
from windloom.testing.rows import answer_rows

__all__ = ["answer", "answer_join", "answer_rows"]
