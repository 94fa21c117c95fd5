"""Relations in queries: where they may stand, which stream decides about windows, and streams enriched with them."""
