"""A round, shard by shard, for the step on executors. It goes when the Spark operator replaces it."""
