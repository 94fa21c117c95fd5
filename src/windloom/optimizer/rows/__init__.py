"""Row queries in a plan: what is kept for them, in which order strands are joined, and how many rows to expect."""
