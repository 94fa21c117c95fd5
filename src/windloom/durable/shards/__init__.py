"""A round shard by shard: each shard of the groups has its own state, in files that any task can read."""
