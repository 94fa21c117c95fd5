"""Row queries in rounds: which ends are reported, which tuples are needed for it, which are kept; pure."""
