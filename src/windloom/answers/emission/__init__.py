"""Which rows of answers are reported: the clause EMIT."""
