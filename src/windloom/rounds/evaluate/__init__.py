"""HAVING and expressions over aggregates, evaluated on Arrow columns; equal to Spark, or declined.

A value that Spark would refuse (a division by zero, an overflow) is never guessed: the whole table is declined, and
Spark says what is wrong in its own words.
"""

from windloom.rounds.evaluate.shapes import answer_rows, output_kinds
from windloom.rounds.evaluate.values import DeclinedError

__all__ = ["DeclinedError", "answer_rows", "output_kinds"]
