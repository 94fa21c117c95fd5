"""Measures the constants of the cost model on this machine; `windloom calibrate` runs it."""
