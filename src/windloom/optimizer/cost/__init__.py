"""Cost: formulas of the papers and of our own techniques."""
