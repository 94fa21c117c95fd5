"""One file per clause: the select list with GROUP BY and HAVING, EMIT, and urgency."""
