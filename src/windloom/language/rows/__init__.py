"""Row queries: rows of windows instead of aggregates, joined pair by pair, and set operations between them."""
