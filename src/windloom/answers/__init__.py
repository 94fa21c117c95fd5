"""From cells to the rows that a user sees: trees, joins, EMIT, HAVING."""
