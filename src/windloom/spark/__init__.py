"""Everything that touches Spark: the session, ingest, partials, placement, sinks."""
