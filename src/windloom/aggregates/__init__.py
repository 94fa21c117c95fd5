"""Aggregates as cards: one file per family of components holds everything about it.

This folder lies between the kernels, whose families combine the values of cards, and the plan, which asks cards for
everything else. Cards write Spark SQL as text and never import Spark.
"""

from windloom.aggregates.planned import PlannedComponent, card_for, lift, lower, neutral
from windloom.aggregates.registry import CARDS, FUNCTIONS

__all__ = ["CARDS", "FUNCTIONS", "PlannedComponent", "card_for", "lift", "lower", "neutral"]
