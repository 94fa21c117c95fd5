"""The Spark job of row queries: tuples of strands are joined, and their rows put into windows."""
