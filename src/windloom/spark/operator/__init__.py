"""Windloom as one Spark operator: from frames of tuples, or of file names, to a frame of answers."""
