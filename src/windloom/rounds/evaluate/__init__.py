"""HAVING and expressions over aggregates, evaluated on Arrow columns; equal to Spark's result, or declined.

If Spark would refuse a value (a division by zero, an overflow), the whole table is declined, and
Spark reports what is wrong in its own words.
"""

from windloom.expressions.arithmetic import DeclinedError
from windloom.rounds.evaluate.shapes import answer_rows, output_kinds

__all__ = ["DeclinedError", "answer_rows", "output_kinds"]
