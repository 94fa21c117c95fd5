"""Aggregators: one file per family of components holds everything about it, from Spark's SQL to the answer.

This folder lies between the kernels, whose families combine the values of aggregators, and the plan, which asks
aggregators for everything else. Aggregators write Spark SQL as text and never import Spark.
"""
