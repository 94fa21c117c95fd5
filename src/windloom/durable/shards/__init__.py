"""A round shard by shard: each shard of the groups has a state of its own, in files that any task can read."""
