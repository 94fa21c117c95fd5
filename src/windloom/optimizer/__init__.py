"""From queries to a plan, and from a plan to the next one between two rounds."""
