"""Row queries: which windows they report, and the rows of interval joins."""
