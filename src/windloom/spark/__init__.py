"""Everything that touches Spark: session, sources, intake, relations, row queries, answers, verification."""
