"""Answers and intake on executors, shard by shard. It goes when the Spark operator replaces it."""
