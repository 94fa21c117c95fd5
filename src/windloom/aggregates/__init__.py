"""Aggregates as cards: one file per family of components holds everything about it.

This folder lies between the kernels, whose families combine the values of cards, and the plan, which asks cards for
everything else. Cards write Spark SQL as text and never import Spark.
"""
