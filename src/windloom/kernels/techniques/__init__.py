"""One file per technique of final aggregation, and their registry."""
