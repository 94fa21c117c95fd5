"""Measuring the constants of the cost model on this machine: what `windloom calibrate` runs."""
