"""Relations in queries: where they may occur, which stream has the windows, and streams enriched with them."""
