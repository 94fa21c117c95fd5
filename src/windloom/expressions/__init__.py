"""One typed tree: the types of expressions by Spark's rules, and their evaluation on Arrow columns."""
